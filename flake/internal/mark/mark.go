// Package mark keeps marks in a file, a time and perhaps a few words each, and what
// belongs to them, so that they survive kill -9, a power cut and a full disk: the old
// ones or the new ones are there, never neither.
//
// [Open] locks the file and reads it, [File.Save] writes it. What the times and
// the words mean is the caller's affair.
//
// The file has two slots, and a save writes the one that does not count, in place. On file
// systems that overwrite blocks where they are, such as ext4 and xfs, that needs no space,
// so a full disk changes nothing. On those that copy on write, such as btrfs and zfs, it
// may fail for want of space, and so it may if the file has been reflinked or is in a
// snapshot.
package mark

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// Disk is what a mark needs of a file system. [OS] is the real one.
type Disk interface {
	// Resolve follows symbolic links; a path where nothing is stays as it is.
	Resolve(path string) (string, error)
	// Lock keeps others from the path until it is closed, or the process ends.
	// [ErrLocked]: another has it.
	Lock(path string) (Lock, error)
	// Read gives up to max bytes of a regular file that may be written, or
	// [fs.ErrNotExist].
	Read(path string, max int64) ([]byte, error)
	// Overwrite writes data over what a file has at an offset, and makes it durable.
	Overwrite(path string, offset int64, data []byte) error
	// Create makes a file in the place of the one there is.
	Create(path string) (Writer, error)
	// Rename puts one file in the place of another, whole or not at all.
	Rename(from, to string) error
	// SyncDir makes the names in a folder durable.
	SyncDir(path string) error
}

// Lock is a lock that is held.
type Lock interface {
	// Keep makes sure that the lock is still held. If its file was removed it takes
	// the lock again, and tells so: another may have had it meanwhile.
	Keep() (again bool, err error)
	io.Closer
}

// Writer is a file being written. Sync makes its content durable.
type Writer interface {
	io.Writer
	Sync() error
	io.Closer
}

// ErrLocked: another process holds the lock.
var ErrLocked = errors.New("another node is running with it")

// File is a file of marks, locked.
type File struct {
	disk Disk
	name string // as it was opened, whatever becomes the working folder
	path string // without symbolic links
	lock Lock

	now   image // what was saved last, and is there unless another came
	sure  bool  // whether it is durable, and so is the name of the file that is there
	doubt bool  // whether another may have come
}

// Open locks the file at path and reads it; the content is empty if there is no
// file. A file that is anything else is an error that says what it is and what to
// do; it is never taken for none.
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

// Former opens the file that a generator had of its own, when each had one: the name
// stood behind that of this file. It is nil if there is none.
func (f *File) Former(name string) (former *File, last Mark, err error) {
	path := f.name + "-" + name
	real, err := f.disk.Resolve(path)
	if err != nil {
		return nil, last, advise(path, err)
	}
	if _, there, err := read(f.disk, real); there.data == nil { // before a lock is made
		return nil, last, err
	}
	former, c, err := Open(f.disk, path)
	if err != nil {
		return nil, last, err
	}
	last, ok := c.Marks[""]
	if !ok || len(c.Marks) > 1 {
		return nil, last, errors.Join(former.Refuse("it has the marks of several generators, where that of one belongs"), former.Close())
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
		return fmt.Errorf("timestamp_path %s: %w; it was left as it is. Set another path, and take its time over "+
			"to that with: flake import -dets %s -timestamp PATH", path, err, path)
	}
	return fmt.Errorf("timestamp_path %s: %w; it was left as it is. "+
		"Put the right file back; or, if the clock was not set back since ids were last made, "+
		"move this one away and start again", path, err)
}

// Refuse returns the error of a file that is not to be started with, for a reason.
func (f *File) Refuse(reason string) error { return refuse(f.path, errors.New(reason)) }

func advise(path string, err error) error {
	switch {
	case errors.Is(err, ErrLocked):
		return fmt.Errorf("timestamp_path %s: %w; stop that one first, or give this one a timestamp_path and a worker_id of its own", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("timestamp_path %s: %w; make the folder, or set another path", path, err)
	}
	return fmt.Errorf("timestamp_path %s: %w; make it a file that this user can read and write, in a folder that no other user can write to, or set another path", path, err)
}

// Path is where the file is, symbolic links resolved.
func (f *File) Path() string { return f.path }

// Save makes content durable in place of that before. On an error either may be
// there after a crash.
func (f *File) Save(c Content) error {
	if err := f.save(c); err != nil {
		return fmt.Errorf("timestamp_path %s: %w", f.path, err)
	}
	return nil
}

// save writes in place if it can, else a new file. What could not be read is not written.
func (f *File) save(c Content) error {
	text := c.text()
	if _, err := parseContent(text); err != nil {
		return fmt.Errorf("what would be written could not be read: %w", err)
	}
	next, fits := f.now.with(text)
	if !fits {
		next = newImage(f.now.sequence+1, text, f.now.size)
	}
	if len(next.data) >= maxSize {
		return errLarge
	}
	if err := f.hold(); err != nil {
		return err
	}
	var inPlace error
	if fits {
		inPlace = f.overwrite(next)
	}
	if !fits || inPlace != nil {
		switch err := f.replace(next); {
		case err != nil && inPlace != nil:
			return fmt.Errorf("%w; a new file instead: %w", inPlace, err)
		case err != nil:
			return err
		}
	}
	if err := f.hold(); err != nil {
		return err
	}
	f.now, f.sure = next, true
	return nil
}

// errChanged is returned for a file that was removed, replaced, overwritten or truncated.
var errChanged = errors.New("somebody has changed the file")

// overwrite writes the slot that does not count, which may be torn by a crash or a write
// that failed before.
//
// What Open found may be what a process wrote before it was killed, and be lost in a
// power cut together with the other slot. So it is made durable first, as is the file's name.
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

// write writes the slot of an image that counts.
func (f *File) write(m image) error {
	return f.disk.Overwrite(f.path, int64(m.slot*m.size), m.at(m.slot))
}

// replace writes a new file aside and renames it. It is written from scratch each time,
// since after a failed fsync the kernel may take what it lost for written. The folder's
// fsync makes the new name last.
func (f *File) replace(next image) error {
	aside := f.path + ".new"
	w, err := f.disk.Create(aside)
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
	if err := f.hold(); err != nil {
		return err
	}
	f.sure = false // until the folder is synced
	if err := f.disk.Rename(aside, f.path); err != nil {
		return err
	}
	return f.disk.SyncDir(filepath.Dir(f.path))
}

// hold makes sure that nobody else has the file, nor has had it since it was saved
// last: then the marks may be from before the other's last ids.
func (f *File) hold() error {
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
		return errors.New("another node may have run with it while its lock's file was removed; start this one anew")
	}
	f.doubt = false
	return nil
}

// Close gives up the lock; the file stays.
func (f *File) Close() error { return f.lock.Close() }
