package mark

import (
	"fmt"
	"os"
	"path/filepath"
)

// Check returns the error that [Open] would return, ignoring locks. It changes nothing.
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

// folder returns the FileInfo of a directory. It fails if the directory is world-writable,
// because any user could then create the files first and so block saves.
func folder(path string) (os.FileInfo, error) {
	dir, err := os.Stat(path)
	if err == nil && dir.IsDir() && dir.Mode().Perm()&0o002 != 0 {
		err = fmt.Errorf("its directory is world-writable (%v), so any user could block saves", dir.Mode())
	}
	return dir, err
}
