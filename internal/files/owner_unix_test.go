//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A file that is replaced by a pipe while it is read does not block the reader.
func TestReadReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for _, err := range []error{os.WriteFile(path+".file", []byte("token"), 0o600), syscall.Mkfifo(path+".pipe", 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 5_000 {
			if text, _, err := Read(path, MaxSecret); err == nil && text != "token" {
				t.Errorf("read %q", text)
			}
		}
	}()
	for start := time.Now(); time.Since(start) < time.Minute; {
		for _, name := range []string{".file", ".pipe"} {
			if err := errors.Join(os.Link(path+name, path+".new"), os.Rename(path+".new", path)); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
	t.Fatal("Read is blocked")
}
