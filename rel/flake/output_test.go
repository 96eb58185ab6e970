package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// fifo makes a full named pipe whose reader does not read.
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

// script returns a command that runs a line of sh in place of flake.
func script(t *testing.T, line string, args ...any) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "flake")
	syscall.ForkLock.RLock() // a child that inherits the open file would keep it from being run
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\nPATH=\n"+line+"\n", args...), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// If the reader of the log stalls or ends, callers are still admitted, and the node stops cleanly.
func TestLogNotRead(t *testing.T) {
	for _, reader := range []string{"stalls", "ends"} {
		t.Run(reader, func(t *testing.T) {
			t.Parallel()
			log, f := fifo(t)
			n := startCommand(t, script(t, "exec %q \"$@\" 2> %q", command, log), "", fmt.Sprintf("cookie = %q", cookie))
			if reader == "ends" {
				f.Close()
			}
			for i := range 30 { // three times the limit on lines with the same message
				hangUp(t, dialAs(t, n.addr, fmt.Sprintf("caller%d@127.0.0.1", i)))
			}
			n.erl(nil, "get", "monitors")
		})
	}
}

// A node that fails to start does not wait for the reader of its log either.
func TestRefusalNotRead(t *testing.T) {
	t.Parallel()
	log, _ := fifo(t)
	for what, test := range map[string]struct {
		node string
		code int
	}{
		"configuration": {"cookie = 7", exitUsage},
		"node":          {"cookie = \"not the default\"\nlisten = \"192.0.2.1:0\"", exitFailure},
	} {
		n := spawn(t, freePort(t), script(t, "exec %q \"$@\" 2> %q", command, log), "-noinput", "-config",
			configFile(t, test.node))
		if code := n.wait(); code != test.code {
			t.Errorf("%s: exit status %d, want %d", what, code, test.code)
		}
	}
}
