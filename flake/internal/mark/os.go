package mark

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// OS is the machine's file system, a [Disk].
type OS struct{}

// Resolve implements [Disk]. It refuses a dangling link, which a save would replace with a file.
func (OS) Resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("it is empty")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(path); err == nil {
		target, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) { // not wrapped, since callers take ErrNotExist for a missing directory
			return "", fmt.Errorf("it is a link, and the file to which it points is missing: %v", err)
		}
		return target, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// Read implements [Disk].
func (OS) Read(path string, max int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory")
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is not a regular file (%v)", info.Mode())
	case info.Mode().Perm()&0o222 == 0:
		// A save could still replace the file, but it was probably made read-only on purpose.
		return nil, fmt.Errorf("it is read-only (%v)", info.Mode())
	}
	return io.ReadAll(io.LimitReader(f, max))
}

func (OS) Overwrite(path string, offset int64, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|noFollow|noWait, 0)
	if err != nil {
		return err
	}
	return write(f, offset, data)
}

// write writes durably, and closes f.
func write(f *os.File, offset int64, data []byte) error {
	_, err := f.WriteAt(data, offset)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Create implements [Disk]. It removes an existing file, because its owner may be another user,
// who could then change the content.
func (OS) Create(path string, data []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return write(f, 0, data)
}

func (OS) Rename(from, to string) error { return os.Rename(from, to) }

func (OS) SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
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

// Lock implements [Disk] with a separate lock file, because a rename replaces the file of marks.
// The lock file is never removed.
func (OS) Lock(path string) (Lock, error) {
	dir, err := folder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	l := &fileLock{path: path, device: device(dir)}
	return l, l.take()
}

type fileLock struct {
	path   string
	device uint64 // the device of its directory
	file   *os.File
}

// take creates the lock file, with mode 0600 because flock needs only read access, and locks it.
func (l *fileLock) take() error {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	f.Chmod(0o600) // the file may have existed; Chmod fails on file systems without permissions
	if err := flock(f); err != nil {
		f.Close()
		return err
	}
	l.file.Close() // does nothing if nil
	l.file = f
	return nil
}

// Keep also updates the lock file's times, so that programs that clean /tmp leave it alone. It
// fails if the directory's device was unmounted: the directory now at that path has no marks,
// or old ones.
func (l *fileLock) Keep() (again bool, err error) {
	dir, err := os.Stat(filepath.Dir(l.path))
	if err != nil {
		return false, err
	}
	if device(dir) != l.device {
		return false, errors.New("its directory is on another device than before: " +
			"mount the former device again, or restart the node")
	}
	held, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	if there, _ := os.Stat(l.path); !os.SameFile(held, there) {
		return true, l.take() // fails if the file cannot be created
	}
	now := time.Now()
	return false, os.Chtimes(l.path, now, now)
}

func (l *fileLock) Close() error { return l.file.Close() }
