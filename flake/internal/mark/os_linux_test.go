package mark

import (
	"errors"
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
