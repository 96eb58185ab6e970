// Package mark keeps marks in a file, a time and perhaps a few words each, so that
// they survive kill -9, a power cut and a full disk: the old ones or the new ones
// are there, never neither.
//
// [Open] locks the file and reads it, [File.Save] replaces it. What the times and
// the words mean is the caller's affair.
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

	data  []byte // what was saved last, and is there unless another came
	doubt bool   // whether another may have come
}

// Open locks the file at path and reads its marks; they are nil if there is no
// file. A file that is anything else is an error that says what it is and what to
// do; it is never taken for none.
func Open(disk Disk, path string) (*File, Marks, error) {
	real, err := disk.Resolve(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, nil, advise(path, err)
	}
	lock, err := disk.Lock(real + ".lock")
	if err != nil {
		return nil, nil, advise(real, err)
	}
	marks, err := read(disk, real)
	if err != nil {
		lock.Close()
		return nil, nil, err
	}
	return &File{disk: disk, name: path, path: real, lock: lock, data: marks.append(nil)}, marks, nil
}

// Former opens the file that a generator had of its own, when each had one: the name
// stood behind that of this file. It is nil if there is none.
func (f *File) Former(name string) (former *File, last Mark, err error) {
	path := f.name + "-" + name
	real, err := f.disk.Resolve(path)
	if err != nil {
		return nil, last, advise(path, err)
	}
	if marks, err := read(f.disk, real); marks == nil { // before a lock is made
		return nil, last, err
	}
	former, marks, err := Open(f.disk, path)
	if err != nil {
		return nil, last, err
	}
	last, ok := marks[""]
	if !ok || len(marks) > 1 {
		return nil, last, errors.Join(former.Refuse("it has the marks of several generators, where that of one belongs"), former.Close())
	}
	return former, last, nil
}

func read(disk Disk, path string) (Marks, error) {
	data, err := disk.Read(path, maxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, advise(path, err)
	}
	marks, err := Parse(data)
	if err != nil {
		return nil, refuse(path, err)
	}
	return marks, nil
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

// Save makes marks durable in place of those before. On an error either may be
// there after a crash.
func (f *File) Save(m Marks) error {
	if err := f.save(m.append(nil)); err != nil {
		return fmt.Errorf("timestamp_path %s: %w", f.path, err)
	}
	return nil
}

// save writes aside and renames, for a write in place could be torn. It writes
// the new file from scratch each time, since after a failed fsync the kernel
// may take what it lost for written. The folder's fsync makes the new name last.
// What could not be read is not written.
func (f *File) save(data []byte) error {
	if _, err := Parse(data); err != nil {
		return fmt.Errorf("what would be written could not be read: %w", err)
	}
	if err := f.hold(); err != nil {
		return err
	}
	aside := f.path + ".new"
	w, err := f.disk.Create(aside)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
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
	if err := f.disk.Rename(aside, f.path); err != nil {
		return err
	}
	if err := f.disk.SyncDir(filepath.Dir(f.path)); err != nil {
		return err
	}
	if err := f.hold(); err != nil {
		return err
	}
	f.data = data
	return nil
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
