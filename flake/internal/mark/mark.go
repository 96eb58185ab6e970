// Package mark keeps marks in a file. A mark is a time, and perhaps a few words whose meaning
// is up to the caller. The file survives kill -9, a power cut and a full disk: it always
// contains the old or the new marks.
//
// [Open] locks the file and reads it; [File.Save] writes it.
//
// The file has two slots, and a save writes the same content to both, one after the other. It
// makes the first durable before it writes the second, and returns once both are. So while one
// slot is being written, the other is intact and durable, and once Save has returned, either slot
// alone has its content. A crash can tear only a slot whose content no Save has returned for. So
// a start with one damaged slot, for whatever reason, finds marks that no id has passed.
//
// On file systems that overwrite blocks in place, such as ext4 and xfs, a save needs no space, so
// a full disk does no harm. A save may fail for lack of space on file systems that copy on write,
// such as btrfs and zfs, and on any file system if the file was reflinked or is in a snapshot.
//
// If the file system does not support the lock, another process may write to the file. Each slot
// shows which File saved it. A save reads the file before it writes, and again after each slot,
// and fails with [ErrShared] if it finds a slot of another process that Open did not read. Of two
// saves that overlap, at least one fails, because it finds the other's slot after its own first.
package mark

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
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
	// Create makes a new file with data, and makes its content durable. It first removes any file
	// that is already there.
	Create(path string, data []byte) error
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

// ErrLocked means that another process holds the lock.
var ErrLocked = errors.New("another node is running with it")

// ErrShared means that another process may have written to the file, in spite of the lock. The
// File then writes nothing more.
var ErrShared = errors.New("another node may have run with it")

var (
	errWritten = fmt.Errorf("%w: it has marks that this node did not write, so this file system ignores the lock, "+
		"or a copy was put in its place; stop the other node, or give this one a different timestamp_path "+
		"and worker_id; then restart this node", ErrShared)
	errLost = fmt.Errorf("%w while its lock file was removed; restart this one", ErrShared)
)

// File is a locked file of marks.
type File struct {
	disk   Disk
	path   string // the path without symbolic links
	lock   Lock
	writer uint64 // a random number, in each slot that this File has saved
	found  image  // the image that Open read

	now   image // the image last read or saved
	sure  bool  // whether the current slot of now, and the file's name, are durable
	doubt bool  // whether the lock was lost, and the file has not been read since
	ended error // why nothing more is written, or nil
}

// Open locks the file at path and reads it. If the file does not exist, the content is empty.
// Open fails if the file is anything but a file of marks; the error says what it is and what to
// do.
func Open(disk Disk, path string) (*File, Content, error) {
	real, err := disk.Resolve(path)
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
	return &File{disk: disk, path: real, lock: lock, writer: rand.Uint64(), found: now, now: now}, c, nil
}

// Damaged returns which slot was damaged when Open read the file, "first" or "second", or "". The
// other slot has the marks.
func (f *File) Damaged() string {
	if !f.found.damaged {
		return ""
	}
	return [2]string{"second", "first"}[f.found.slot]
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
// old or the new content. After [ErrShared], every later Save fails in the same way.
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
	next, fits := f.now.next(f.writer, text)
	switch {
	case f.ended != nil:
		return f.ended
	case len(next.data) >= maxSize:
		return errLarge
	}
	err := f.check(false, f.now)
	if !fits && !fatal(err) {
		return f.replace(next)
	}
	if err == nil {
		err = f.overwrite(next)
	}
	if err == nil || fatal(err) {
		return err
	}
	failed := f.replace(next)
	if failed != nil && f.ended == nil {
		failed = fmt.Errorf("%w; writing a new file instead: %w", err, failed)
	}
	return failed
}

// An inPlaceError is why the file cannot be overwritten in place. A new file can be written instead.
type inPlaceError struct{ error }

func (e inPlaceError) Unwrap() error { return e.error }

// fatal reports whether the save must end with err.
func fatal(err error) bool { return err != nil && !errors.As(err, new(inPlaceError)) }

var errChanged = errors.New("another program has changed the file")

// overwrite writes both slots, first the one that is not current. After an error, the current slot
// of f.now is still intact and durable.
//
// The slot that Open read may not be durable if the process that wrote it was killed. A power cut
// during the overwrite could then lose both slots. So overwrite first makes that slot and the
// file's name durable.
func (f *File) overwrite(next image) error {
	if !f.sure {
		if err := f.write(f.now); err != nil {
			return err
		}
		if err := f.disk.SyncDir(filepath.Dir(f.path)); err != nil {
			return inPlaceError{err}
		}
		f.sure = true
	}
	for range 2 {
		next.slot = 1 - f.now.slot
		if err := f.write(next); err != nil {
			return err
		}
		f.now = next
	}
	return nil
}

// write writes the current slot of m. Then both this slot and the one of f.now must be in the file.
func (f *File) write(m image) error {
	if err := f.disk.Overwrite(f.path, int64(m.slot*m.size), m.at(m.slot)); err != nil {
		return inPlaceError{err}
	}
	return f.check(true, m, f.now)
}

// replace writes a temporary file and renames it. It creates that file anew each time, because
// after a failed fsync the kernel may treat lost data as written. The fsync of the directory
// makes the new name durable.
func (f *File) replace(next image) error {
	temporary := f.path + ".new"
	if err := f.disk.Create(temporary, next.data); err != nil {
		return err
	}
	if err := f.check(true); fatal(err) {
		return err
	}
	if err := f.disk.Rename(temporary, f.path); err != nil {
		return err
	}
	f.now, f.sure = next, false // until the directory is synced
	if err := f.disk.SyncDir(filepath.Dir(f.path)); err != nil {
		return err
	}
	f.sure = true
	if err := f.check(true); fatal(err) {
		return err
	}
	return nil
}

// check reads the file. It fails if another process holds the lock or has written to the file;
// otherwise the marks might be older than the other process's ids. It returns an inPlaceError if the
// file cannot be read, or lacks the current slot of one of the images. If the lock was lost for a
// while, a file that cannot be read is fatal.
//
// A save that has begun may already have overwritten what another process wrote. So if the lock is
// lost during a save, nothing more is written.
func (f *File) check(saving bool, images ...image) error {
	again, err := f.lock.Keep()
	if again && saving {
		return f.end(errLost)
	}
	if f.doubt = f.doubt || again; err != nil {
		return err
	}
	there, err := f.disk.Read(f.path, maxSize)
	switch {
	case f.shared(there, images):
		return f.end(errWritten)
	case err == nil, errors.Is(err, fs.ErrNotExist):
		f.doubt = false
	case f.doubt:
		return err
	}
	for _, m := range images {
		if err == nil && !m.in(there) {
			err = errChanged
		}
	}
	if err != nil {
		return inPlaceError{err}
	}
	return nil
}

// shared reports whether data has an intact slot that another process has saved since Open, or is
// a file of another version. It need not parse the current slots of the images, which are those of f.
func (f *File) shared(data []byte, images []image) bool {
	halves, intact := image{data: data, size: len(data) / 2}, false
	for i := range 2 {
		slot := halves.at(i)
		ok := slices.ContainsFunc(images, func(m image) bool { return bytes.Equal(slot, m.at(m.slot)) })
		if !ok {
			var writer uint64
			if _, writer, _, ok = parseSlot(slot); ok && writer != f.writer && !f.found.has(slot) {
				return true
			}
		}
		intact = intact || ok
	}
	return !intact && errors.As(describe(data), new(versionError))
}

func (f *File) end(err error) error {
	f.ended = err
	return err
}

// Close releases the lock. The file stays.
func (f *File) Close() error { return f.lock.Close() }
