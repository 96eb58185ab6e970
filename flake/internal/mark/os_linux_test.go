package mark

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A directory that cannot be synced, such as /proc, is an error.
func TestFolderThatCannotBeSynced(t *testing.T) {
	if err := (OS{}).SyncDir("/proc"); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	if err := (OS{}).SyncDir("/none"); !errors.Is(err, syscall.ENOENT) {
		t.Error(err)
	}
}

// Folders on different file systems have different devices.
func TestDevice(t *testing.T) {
	here, err := os.Stat(t.TempDir())
	proc, procErr := os.Stat("/proc")
	if err != nil || procErr != nil || device(here) == device(proc) {
		t.Error("both have the same device", err, procErr)
	}
}

// No other user can open the lock file, and so hold the lock, even if it was created readable.
func TestLockForNobodyElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark.lock")
	for range 2 {
		lock, err := OS{}.Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if err := errors.Join(lock.Close(), os.Chmod(path, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// A write that fails is an error, and the file is closed.
func TestWriteFails(t *testing.T) {
	f, err := os.Open(os.DevNull) // only to read
	if err != nil {
		t.Fatal(err)
	}
	if err := write(f, 0, []byte("x")); !errors.Is(err, syscall.EBADF) || !errors.Is(f.Close(), os.ErrClosed) {
		t.Error(err)
	}
	if err := (OS{}).Create("/none/file", nil); !errors.Is(err, syscall.ENOENT) {
		t.Error(err)
	}
}
