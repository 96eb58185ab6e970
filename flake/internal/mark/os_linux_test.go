package mark

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A folder that cannot be made durable is no success: that of /proc cannot.
func TestFolderThatCannotBeSynced(t *testing.T) {
	if err := (OS{}).SyncDir("/proc"); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	if err := (OS{}).SyncDir("/none"); !errors.Is(err, syscall.ENOENT) {
		t.Error(err)
	}
}

// Folders of several file systems are told apart.
func TestDevice(t *testing.T) {
	here, err := os.Stat(t.TempDir())
	proc, procErr := os.Stat("/proc")
	if err != nil || procErr != nil || device(here) == device(proc) {
		t.Error("one device", err, procErr)
	}
}

// Nobody else can open the lock, and so hold it; nor one that was made for all to read.
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
