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

// OS is the machine's file system.
type OS struct{}

// Resolve implements [Disk]. A link to nothing is an error: it would be
// replaced by a file.
func (OS) Resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("it is empty")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(path); err == nil {
		return filepath.EvalSymlinks(path)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// Read implements [Disk].
func (OS) Read(path string, max int64) ([]byte, error) {
	// What is there is looked at first: opening a pipe would wait for a writer.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is not a regular file (%v)", info.Mode())
	case info.Mode().Perm()&0o222 == 0:
		// It could be replaced all the same, but somebody meant it to stay.
		return nil, fmt.Errorf("it is read-only (%v)", info.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max))
}

// Overwrite implements [Disk].
func (OS) Overwrite(path string, offset int64, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|noFollow, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, offset)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Create implements [Disk]. The file is a new one: what is there may be another
// user's, who could then write what is kept.
func (OS) Create(path string) (Writer, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// Rename implements [Disk].
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// SyncDir implements [Disk].
func (OS) SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Lock implements [Disk] with a file beside the mark's, which a rename cannot
// take away as it does the mark's own. It is never removed.
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
	device uint64 // that its folder is on
	file   *os.File
}

// take opens the file for nobody else: who can read it can lock it.
func (l *fileLock) take() error {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	f.Chmod(0o600) // an old one; not every disk has permissions
	if err := flock(f); err != nil {
		f.Close()
		return err
	}
	l.file.Close() // nothing happens if there was none
	l.file = f
	return nil
}

// Keep also keeps the file young, so that cleaners of /tmp leave it alone. When the
// device is unmounted, another folder appears where its folder was: there the next
// start would not find what is kept, or find what is older.
func (l *fileLock) Keep() (again bool, err error) {
	dir, err := os.Stat(filepath.Dir(l.path))
	if err != nil {
		return false, err
	}
	if device(dir) != l.device {
		return false, errors.New("its folder is on another device than before: mount that again, or start the node anew")
	}
	held, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	if there, _ := os.Stat(l.path); !os.SameFile(held, there) {
		return true, l.take() // it says what is wrong if nothing can be there
	}
	now := time.Now()
	return false, os.Chtimes(l.path, now, now)
}

func (l *fileLock) Close() error { return l.file.Close() }
