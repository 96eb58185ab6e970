// Package mark keeps marks in a file, a time and perhaps a few words each, so that
// they survive kill -9, a power cut and a full disk: the old ones or the new ones
// are there, never neither.
//
// [Open] locks the file and reads it, [File.Save] writes it. What the times and
// the words mean is the caller's affair.
//
// The file has its size from the start and is written in place, so that a full disk changes
// nothing where files are overwritten, as on ext4 and xfs. Where they are copied on write,
// as on btrfs and zfs, in a snapshot or with a reflink of the file, a save needs some space.
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
	// Create makes a file in the place of the one there is.
	Create(path string) (Writer, error)
	// Overwrite writes over part of a file that is there, and makes that durable. After an
	// error any of it may be written.
	Overwrite(path string, offset int64, data []byte) error
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

	data     []byte // what is there unless another came; nil: no file, or it is not known
	size     int    // of a slot; 0: the file is of a version before
	sequence uint64 // of the slot that was saved last
	doubt    bool   // whether another may have come
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
	f := &File{disk: disk, name: path, path: real, lock: lock}
	c, err := f.read()
	if err != nil {
		lock.Close()
		return nil, Content{}, err
	}
	return f, c, nil
}

func (f *File) read() (c Content, err error) {
	if f.data, err = read(f.disk, f.path); f.data == nil {
		return c, err
	}
	if c, f.sequence, err = parse(f.data); err != nil {
		return c, refuse(f.path, err)
	}
	if f.sequence > 0 {
		f.size = len(f.data) / 2
	}
	return c, nil
}

// Former opens the file that a generator had of its own, when each had one: the name
// stood behind that of this file. It is nil if there is none.
func (f *File) Former(name string) (former *File, last Mark, err error) {
	path := f.name + "-" + name
	real, err := f.disk.Resolve(path)
	if err != nil {
		return nil, last, advise(path, err)
	}
	if data, err := read(f.disk, real); data == nil { // before a lock is made
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

// read returns what is in a file; nil: there is none.
func read(disk Disk, path string) ([]byte, error) {
	data, err := disk.Read(path, maxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, advise(path, err)
	case data == nil:
		data = []byte{}
	}
	return data, nil
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

// Save makes a content durable in place of the one before. On an error either may be
// there after a crash.
func (f *File) Save(c Content) error {
	if err := f.save(c); err != nil {
		return fmt.Errorf("timestamp_path %s: %w", f.path, err)
	}
	return nil
}

// save writes what can be read again, and only while nobody else has the file.
func (f *File) save(c Content) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("what would be written could not be read: %w", err)
	}
	if err := f.hold(); err != nil {
		return err
	}
	data, err := f.overwrite(c)
	if err != nil {
		data, err = f.replace(c)
	}
	if err == nil {
		err = f.hold()
	}
	if err == nil {
		f.data, f.size, f.sequence = data, len(data)/2, f.sequence+1
	}
	return err
}

var errOther = errors.New("it is not the file that was saved last")

// overwrite writes a slot of the file, if that is the one that was saved last, also after it,
// and returns what is there then. The other slot stays: the write may be torn.
func (f *File) overwrite(c Content) ([]byte, error) {
	slot, at := c.slot(f.sequence+1, f.size), offset(f.sequence+1, f.size)
	if slot == nil {
		return nil, errors.New("there is no room")
	}
	if there, err := f.disk.Read(f.path, maxSize); err != nil || !bytes.Equal(there, f.data) {
		return nil, errors.Join(err, errOther)
	}
	want := bytes.Clone(f.data)
	copy(want[at:], slot)
	err := f.disk.Overwrite(f.path, at, slot)
	if err == nil { // its name may be new, and was not made to last by who was killed
		err = f.disk.SyncDir(filepath.Dir(f.path))
	}
	there, readErr := f.disk.Read(f.path, maxSize)
	switch {
	case err == nil && readErr == nil && bytes.Equal(there, want):
		return want, nil
	case err != nil && readErr == nil && len(there) == len(want):
		copy(f.data[at:], there[at:at+int64(len(slot))]) // some of it
	}
	return nil, errors.Join(err, readErr, errOther)
}

// replace writes a new file aside and renames it. It writes that from scratch each time, since
// after a failed fsync the kernel may take what it lost for written. The folder's fsync makes
// the new name last.
func (f *File) replace(c Content) ([]byte, error) {
	data := c.file(f.sequence + 1)
	if len(data) >= maxSize {
		return nil, fmt.Errorf("%d bytes are more than the %d that can be read", len(data), maxSize-1)
	}
	aside := f.path + ".new"
	w, err := f.disk.Create(aside)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	if err == nil {
		err = w.Sync()
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = f.hold()
	}
	if err != nil {
		return nil, err
	}
	f.data = nil // until it is known which will be there
	if err := f.disk.Rename(aside, f.path); err != nil {
		return nil, err
	}
	return data, f.disk.SyncDir(filepath.Dir(f.path))
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
	if err == nil && !bytes.Equal(there, f.data) {
		return errors.New("another node may have run with it while its lock's file was removed; start this one anew")
	}
	f.doubt = false
	return nil
}

// Close gives up the lock; the file stays.
func (f *File) Close() error { return f.lock.Close() }
