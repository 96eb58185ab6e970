package mark

import (
	"fmt"
	"os"
	"path/filepath"
)

// Check returns why [Open] would fail, but for a lock of somebody else's. It changes
// nothing.
func Check(path string) error {
	disk := OS{}
	real, err := disk.Resolve(path)
	if err != nil {
		return advise(path, err)
	}
	dir := filepath.Dir(real)
	if _, err := folder(dir); err != nil {
		return advise(real, err)
	}
	if err := writable(dir); err != nil {
		return advise(real, err)
	}
	_, _, err = read(disk, real)
	return err
}

// folder returns what is known of a folder in which only one user makes files.
//
// In one that every user can write to, any of them could make the files first, and so
// keep the mark from being saved.
func folder(path string) (os.FileInfo, error) {
	dir, err := os.Stat(path)
	if err == nil && dir.IsDir() && dir.Mode().Perm()&0o002 != 0 {
		err = fmt.Errorf("every user can write to its folder (%v), and so stop the ids", dir.Mode())
	}
	return dir, err
}
