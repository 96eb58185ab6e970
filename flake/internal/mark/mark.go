// Package mark keeps marks in a file. A mark is a time, and perhaps a few words whose meaning
// is up to the caller. The file survives kill -9, a power cut and a full disk: it always
// contains the old or the new marks.
//
// [Open] locks the file and reads it; [File.Save] writes it.
//
// The file has two slots, and a save overwrites the one that is not current. On file systems
// that overwrite blocks in place, such as ext4 and xfs, this needs no space, so a full disk
// does no harm. A save may fail for lack of space on file systems that copy on write, such as
// btrfs and zfs, and on any file system if the file was reflinked or is in a snapshot.
package mark

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// Disk is a file system. [OS] is the real one.
type Disk interface {
	// Resolve follows symbolic links. The file itself need not exist.
	Resolve(path string) (string, error)
	// Lock locks the path until the Lock is closed or the process ends. It fails with
	// [ErrLocked] if another process has locked it.
	Lock(path string) (Lock, error)
	// Read returns up to max bytes of a regular file. It fails if the file is read-only,
	// and with [fs.ErrNotExist] if it does not exist.
	Read(path string, max int64) ([]byte, error)
	// Overwrite overwrites a file with data at an offset, and makes that durable.
	Overwrite(path string, offset int64, data []byte) error
	// Create creates a file. It first removes any file that is already there.
	Create(path string) (Writer, error)
	// Rename atomically replaces one file with another.
	Rename(from, to string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(path string) error
}

// Lock is a lock that this process holds.
type Lock interface {
	// Keep makes sure that the lock is still held. If the lock file was removed, Keep locks
	// again and returns true: another process may have held the lock in the meantime.
	Keep() (again bool, err error)
	io.Closer
}

// Writer writes a new file. Sync makes its content durable.
type Writer interface {
	io.Writer
	Sync() error
	io.Closer
}

// ErrLocked means that another process holds the lock.
var ErrLocked = errors.New("another node is running with it")

// File is a locked file of marks.
type File struct {
	disk Disk
	name string // the absolute path as given
	path string // the path without symbolic links
	lock Lock

	now   image // the image last read or saved
	sure  bool  // whether now and the file's name are durable
	doubt bool  // whether another process may have changed the file
}

// Open locks the file at path and reads it. If the file does not exist, the content is empty.
// Open fails if the file is anything but a file of marks; the error says what it is and what to
// do.
func Open(disk Disk, path string) (*File, Content, error) {
	real, err := disk.Resolve(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, Content{}, advise(path, err)
	}
	lock, err := disk.Lock(real + ".lock")
	if err != nil {
		return nil, Content{}, advise(real, err)
	}
	c, now, err := read(disk, real)
	if err != nil {
		lock.Close()
		return nil, Content{}, err
	}
	return &File{disk: disk, name: path, path: real, lock: lock, now: now}, c, nil
}

// Former opens the separate file in which early releases kept the mark of a generator. Its path
// is that of f, followed by a hyphen and name. If it does not exist, Former returns nil.
func (f *File) Former(name string) (former *File, last Mark, err error) {
	path := f.name + "-" + name
	real, err := f.disk.Resolve(path)
	if err != nil {
		return nil, last, advise(path, err)
	}
	if _, there, err := read(f.disk, real); there.data == nil { // do not create a lock file for it
		return nil, last, err
	}
	former, c, err := Open(f.disk, path)
	if err != nil {
		return nil, last, err
	}
	last, ok := c.Marks[""]
	if !ok || len(c.Marks) > 1 {
		err := former.Refuse("it has the marks of several generators, but must have only one")
		return nil, last, errors.Join(err, former.Close())
	}
	return former, last, nil
}

func read(disk Disk, path string) (c Content, now image, err error) {
	data, err := disk.Read(path, maxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, now, nil
	case err != nil:
		return c, now, advise(path, err)
	}
	if c, now, err = parse(data); err != nil {
		return Content{}, image{}, refuse(path, err)
	}
	return c, now, nil
}

func refuse(path string, err error) error {
	if errors.Is(err, errDets) {
		return fmt.Errorf("timestamp_path %s: %w; it was left unchanged. Set another path, and copy its time "+
			"there with: flake import -dets %s -timestamp PATH", path, err, path)
	}
	return fmt.Errorf("timestamp_path %s: %w; it was left unchanged. "+
		"Put the right file back; or, if the clock was not set back since ids were last made, "+
		"move this one away and start again", path, err)
}

// Refuse returns an error that says why no node may start with the file.
func (f *File) Refuse(reason string) error { return refuse(f.path, errors.New(reason)) }

func advise(path string, err error) error {
	switch {
	case errors.Is(err, ErrLocked):
		return fmt.Errorf("timestamp_path %s: %w; stop that node first, "+
			"or give this one a different timestamp_path and worker_id", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("timestamp_path %s: %w; create the directory, or set another path", path, err)
	}
	return fmt.Errorf("timestamp_path %s: %w; make it a file that this user can read and write, "+
		"in a directory that no other user can write to, or set another path", path, err)
}

// Path returns the path of the file, without symbolic links.
func (f *File) Path() string { return f.path }

// Save durably replaces the content. After an error or a crash, the file contains either the
// old or the new content.
func (f *File) Save(c Content) error {
	if err := f.save(c); err != nil {
		return fmt.Errorf("timestamp_path %s: %w", f.path, err)
	}
	return nil
}

// save overwrites the file in place if possible, or writes a new file. It refuses content that
// Open could not read.
func (f *File) save(c Content) error {
	text := c.text()
	if _, err := parseContent(text); err != nil {
		return fmt.Errorf("refusing to write content that cannot be read: %w", err)
	}
	next, fits := f.now.with(text)
	if !fits {
		next = newImage(f.now.sequence+1, text, f.now.size)
	}
	if len(next.data) >= maxSize {
		return errLarge
	}
	if err := f.checkHeld(); err != nil {
		return err
	}
	var inPlace error
	if fits {
		inPlace = f.overwrite(next)
	}
	if !fits || inPlace != nil {
		switch err := f.replace(next); {
		case err != nil && inPlace != nil:
			return fmt.Errorf("%w; writing a new file instead: %w", inPlace, err)
		case err != nil:
			return err
		}
	}
	if err := f.checkHeld(); err != nil {
		return err
	}
	f.now, f.sure = next, true
	return nil
}

// errChanged means that the file was removed, replaced, overwritten or truncated.
var errChanged = errors.New("another program has changed the file")

// overwrite writes the slot that is not current. A crash or a failed write may leave it torn.
//
// The image that Open read may not be durable if the process that wrote it was killed. A power
// cut during the overwrite could then lose both slots. So overwrite first makes that image and
// the file's name durable.
func (f *File) overwrite(next image) error {
	there, err := f.disk.Read(f.path, maxSize)
	if err != nil {
		return err
	}
	is := image{data: there, size: f.now.size}
	if len(there) != len(f.now.data) || !bytes.Equal(is.at(f.now.slot), f.now.at(f.now.slot)) {
		return errChanged
	}
	if !f.sure {
		if err := f.write(f.now); err != nil {
			return err
		}
		if err := f.disk.SyncDir(filepath.Dir(f.path)); err != nil {
			return err
		}
	}
	if err := f.write(next); err != nil {
		return err
	}
	if there, err = f.disk.Read(f.path, maxSize); err == nil && !bytes.Equal(there, next.data) {
		err = errChanged
	}
	return err
}

// write writes the current slot of an image.
func (f *File) write(m image) error {
	return f.disk.Overwrite(f.path, int64(m.slot*m.size), m.at(m.slot))
}

// replace writes a temporary file and renames it. It creates that file anew each time, because
// after a failed fsync the kernel may treat lost data as written. The fsync of the directory
// makes the new name durable.
func (f *File) replace(next image) error {
	temporary := f.path + ".new"
	w, err := f.disk.Create(temporary)
	if err != nil {
		return err
	}
	_, err = w.Write(next.data)
	if err == nil {
		err = w.Sync()
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := f.checkHeld(); err != nil {
		return err
	}
	f.sure = false // until the directory is synced
	if err := f.disk.Rename(temporary, f.path); err != nil {
		return err
	}
	return f.disk.SyncDir(filepath.Dir(f.path))
}

// checkHeld checks that no other process holds the file or has changed it since the last save;
// otherwise the marks might be older than the other process's ids.
func (f *File) checkHeld() error {
	again, err := f.lock.Keep()
	f.doubt = f.doubt || again
	if err != nil || !f.doubt {
		return err
	}
	there, err := f.disk.Read(f.path, maxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && !bytes.Equal(there, f.now.data) {
		return errors.New("another node may have run with it while its lock file was removed; restart this one")
	}
	f.doubt = false
	return nil
}

// Close releases the lock. The file stays.
func (f *File) Close() error { return f.lock.Close() }
