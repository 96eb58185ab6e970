package mark

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
)

// Shadow is a [Disk] for rehearsals: it reads the machine's file system, takes no locks and keeps
// writes in memory. It reads each file once, so it does not see what a running node writes later.
// Lock still fails if this user cannot create files in the directory.
type Shadow struct {
	OS
	Empty bool // pretend that every directory exists, but no file

	files map[string][]byte // what was read or written, by path; nil means that there is no file
}

func (d *Shadow) Resolve(path string) (string, error) {
	if d.Empty {
		return path, nil
	}
	return d.OS.Resolve(path)
}

func (d *Shadow) Lock(path string) (Lock, error) {
	if d.Empty {
		return nothing{}, nil
	}
	dir := filepath.Dir(path)
	_, err := folder(dir)
	if err == nil {
		err = writable(dir)
	}
	return nothing{}, err
}

// Read reads the file until it finds the same twice, because a node may be writing it.
func (d *Shadow) Read(path string, max int64) ([]byte, error) {
	data, known := d.files[path]
	for !known {
		before := data
		var err error
		if data, err = d.OS.Read(path, max); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		known = bytes.Equal(data, before)
	}
	if d.put(path, data); data == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return data, nil
}

func (d *Shadow) Overwrite(path string, offset int64, data []byte) error {
	d.put(path, slices.Concat(d.files[path][:offset], data, d.files[path][int(offset)+len(data):]))
	return nil
}

func (d *Shadow) Create(path string, data []byte) error {
	d.put(path, data)
	return nil
}

func (d *Shadow) Rename(from, to string) error {
	d.put(to, d.files[from])
	return nil
}

func (*Shadow) SyncDir(string) error { return nil }

func (d *Shadow) put(path string, data []byte) {
	if d.files == nil {
		d.files = map[string][]byte{}
	}
	d.files[path] = data
}

// nothing is a lock that locks nothing.
type nothing struct{}

func (nothing) Keep() (bool, error) { return false, nil }
func (nothing) Close() error        { return nil }
