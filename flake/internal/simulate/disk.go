package simulate

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
)

// Disk is a file system in memory that models power cuts. It implements mark.Disk.
//
// The content of a file is durable once the file is synced, and a file's name once its directory
// is synced. A power cut may lose everything else: a file may be old, new or truncated, each
// sector of an overwritten file may be old or new, and only the first few renames may remain.
type Disk struct {
	m *Machine

	live    map[string]*inode // what processes see
	durable map[string]*inode // what survives every power cut
	pending []func(names map[string]*inode)
	locked  map[string]bool

	unlocked bool // whether locks have no effect

	armed int   // the number of calls to point until a crash; 0 means no crash
	fails error // the error of every write, or nil
	slow  time.Duration
	lying bool
	old   []byte // the file before it was last damaged
}

type inode struct {
	data   []byte // the content
	synced []byte // the durable content
}

// sector is the number of bytes that a disk writes atomically.
const sector = 512

// A crash ends the process: the disk panics with it, and the life recovers.
type crash struct{}

// crashed calls do and reports whether it crashed.
func crashed(do func()) (crashed bool) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case crash:
			crashed = true
		default:
			panic(r)
		}
	}()
	do()
	return false
}

func newDisk(m *Machine) *Disk {
	return &Disk{m: m, live: map[string]*inode{}, durable: map[string]*inode{}, locked: map[string]bool{}}
}

// point is called before and after each operation. It lets time pass and may crash the process.
func (d *Disk) point() {
	if d.slow > 0 {
		d.m.pass(time.Duration(d.m.rng.Int64N(int64(d.slow))))
	}
	d.m.pass(time.Duration(d.m.rng.IntN(500_000)))
	if d.armed > 0 {
		if d.armed--; d.armed == 0 {
			panic(crash{})
		}
	}
}

// fail returns the error of an operation, or nil.
func (d *Disk) fail(op, path string) error {
	if d.fails == nil || d.fails == syscall.EIO && d.m.rng.IntN(2) == 0 {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: d.fails}
}

// powerCut keeps everything that is durable, and a random part of the rest.
func (d *Disk) powerCut() {
	for _, rename := range d.pending[:d.m.rng.IntN(len(d.pending)+1)] {
		rename(d.durable)
	}
	d.pending = nil
	for _, name := range slices.Sorted(maps.Keys(d.durable)) {
		node := d.durable[name]
		switch {
		case bytes.Equal(node.data, node.synced):
		case len(node.data) == len(node.synced): // overwritten
			mixed := slices.Clone(node.synced)
			for at := 0; at < len(mixed); at += sector {
				if d.m.rng.IntN(2) == 0 {
					copy(mixed[at:min(at+sector, len(mixed))], node.data[at:])
				}
			}
			node.data = mixed
		default:
			switch d.m.rng.IntN(3) {
			case 0:
				node.data = node.synced
			case 1:
				node.data = node.data[:d.m.rng.IntN(len(node.data)+1)]
			}
		}
		node.synced = node.data
	}
	d.live = maps.Clone(d.durable)
	clear(d.locked)
}

// sure returns the content that a file keeps in any power cut.
func (d *Disk) sure(path string) []byte {
	if node := d.durable[path]; node != nil {
		return node.synced
	}
	return nil
}

// damage damages one half of a file: it flips a bit, or puts zeros or an earlier half there; or it
// swaps the halves. It does nothing, and returns "", unless the file is durable and both halves are
// intact, since a crash may already have damaged one of them.
func (d *Disk) damage(path string) (what string) {
	node := d.live[path]
	if node == nil || node != d.durable[path] || !bytes.Equal(node.data, node.synced) {
		return ""
	}
	size := len(node.data) / 2
	halves := [2][]byte{node.data[:size], node.data[size:]}
	for _, half := range halves {
		if _, err := mark.Parse(slices.Concat(half, half)); err != nil {
			return ""
		}
	}
	half := d.m.rng.IntN(2)
	damaged := slices.Clone(halves[half])
	switch old := d.old; {
	case d.m.rng.IntN(4) == 0:
		what, damaged = "swapped", halves[1-half]
		halves[1-half] = halves[half]
	case d.m.rng.IntN(3) == 0 && len(old) == 2*size:
		what, damaged = "old", old[half*size:][:size]
	case d.m.rng.IntN(2) == 0:
		what = "zeros"
		clear(damaged)
	default:
		what = "bit"
		damaged[d.m.rng.IntN(size)] ^= 1 << d.m.rng.IntN(8)
	}
	d.old = node.data
	halves[half] = damaged
	node.data = slices.Concat(halves[:]...)
	node.synced = node.data
	return fmt.Sprintf("%s in half %d", what, half)
}

// Forget removes a file permanently.
func (d *Disk) Forget(path string) {
	delete(d.live, path)
	delete(d.durable, path)
	d.pending = nil
}

func (d *Disk) Resolve(path string) (string, error) { return path, nil }

func (d *Disk) Lock(path string) (mark.Lock, error) {
	d.point()
	if err := d.fail("open", path); err != nil {
		return nil, err
	}
	if d.locked[path] && !d.unlocked {
		return nil, mark.ErrLocked
	}
	d.locked[path] = true
	return &lock{d, path}, nil
}

type lock struct {
	d    *Disk
	path string
}

func (l *lock) Keep() (bool, error) { return false, nil }
func (l *lock) Close() error        { delete(l.d.locked, l.path); return nil }

func (d *Disk) Read(path string, max int64) ([]byte, error) {
	d.point()
	node := d.live[path]
	if node == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return node.data[:min(int64(len(node.data)), max)], nil
}

// Overwrite needs no space, so it succeeds on a full disk. The process may crash after only some
// sectors have been written.
func (d *Disk) Overwrite(path string, offset int64, data []byte) error {
	fail := d.fail
	if d.fails == syscall.ENOSPC {
		fail = func(string, string) error { return nil }
	}
	d.point()
	if err := fail("open", path); err != nil {
		return err
	}
	node := d.live[path]
	if node == nil {
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	node.data = slices.Clone(node.data) // callers of Read may still use the old slice
	to := node.data[offset:][:len(data)]
	first := d.m.rng.IntN(len(data)/sector+1) * sector
	copy(to[:first], data)
	d.point()
	if err := fail("write", path); err != nil {
		return err
	}
	copy(to[first:], data[first:])
	d.point()
	if err := fail("fsync", path); err != nil {
		return err
	}
	if !d.lying {
		node.synced = node.data
	}
	d.point()
	return nil
}

func (d *Disk) Create(path string, data []byte) error {
	if err := d.Write(path, data); err != nil {
		return err
	}
	d.point()
	if err := d.fail("fsync", path); err != nil {
		return err
	}
	if node := d.live[path]; !d.lying {
		node.synced = node.data
	}
	d.point()
	return nil
}

// Write is like Create, but does not make the content durable.
func (d *Disk) Write(path string, data []byte) error {
	d.point()
	if err := d.fail("open", path); err != nil {
		return err
	}
	node := d.live[path]
	if node == nil {
		node = &inode{}
		d.live[path] = node
		d.pending = append(d.pending, func(names map[string]*inode) { names[path] = node })
	}
	node.data = nil
	d.point()
	if err := d.fail("write", path); err != nil {
		node.data = slices.Clone(data[:d.m.rng.IntN(len(data))])
		return err
	}
	node.data = slices.Clone(data)
	d.point()
	return nil
}

func (d *Disk) Rename(from, to string) error {
	d.point()
	if err := d.fail("rename", from); err != nil {
		return err
	}
	node := d.live[from]
	if node == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	rename := func(names map[string]*inode) {
		names[to] = node
		delete(names, from)
	}
	rename(d.live)
	d.pending = append(d.pending, rename)
	d.point()
	return nil
}

func (d *Disk) SyncDir(path string) error {
	d.point()
	if err := d.fail("fsync", filepath.Dir(path)); err != nil {
		return err
	}
	if !d.lying {
		for _, rename := range d.pending {
			rename(d.durable)
		}
		d.pending = nil
	}
	d.point()
	return nil
}
