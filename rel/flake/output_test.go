package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fifo makes a pipe with a name that is full, and whose reader does not read.
func fifo(t *testing.T) (path string, reader *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		for size := 4096; size > 0; { // to the last byte
			if _, err := syscall.Write(int(fd), make([]byte, size)); err != nil {
				size /= 2
			}
		}
	})
	return path, f
}

// Who reads the log may stall or go: callers get in, and the node stops in good order.
func TestLogNotRead(t *testing.T) {
	for _, reader := range []string{"stalls", "goes"} {
		t.Run(reader, func(t *testing.T) {
			t.Parallel()
			log, f := fifo(t)
			script := filepath.Join(t.TempDir(), "flake")
			if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nPATH=\nexec %q \"$@\" 2> %q\n", command, log), 0o700); err != nil {
				t.Fatal(err)
			}
			n := startCommand(t, script, "", fmt.Sprintf("cookie = %q", cookie))
			if reader == "goes" {
				f.Close()
			}
			for i := range 3 * burst {
				hangUp(t, dialAs(t, n.addr, fmt.Sprintf("caller%d@127.0.0.1", i)))
			}
			n.erl(nil, "get", "monitors")
		})
	}
}

func TestOutput(t *testing.T) {
	r, w := io.Pipe()
	o := newOutput(w)
	const lines = 2 * maxQueued
	for i := range lines {
		fmt.Fprintf(o, "line %d\n", i)
	}
	read := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		read <- string(all)
	}()
	o.Close()
	o.Write([]byte("line after the end\n"))
	<-o.done
	w.Close()
	all := <-read
	var dropped int
	if _, rest, ok := strings.Cut(all, "\n"); ok {
		fmt.Sscanf(rest, "%d lines dropped", &dropped)
	}
	if kept := strings.Count(all, "line "); dropped == 0 || kept+dropped != lines {
		t.Errorf("%d lines and %d dropped, of %d:\n%.200s", kept, dropped, lines, all)
	}
}
