//go:build unix

package migrate

import (
	"errors"
	"os"
	"syscall"
)

// giveToOwner gives files that root made to the user whose folder they are in: otherwise a node of that user could
// not lock or read them.
func giveToOwner(folder string, files ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	for _, file := range files {
		err = errors.Join(err, os.Lchown(file, int(owner.Uid), int(owner.Gid)))
	}
	return err
}
