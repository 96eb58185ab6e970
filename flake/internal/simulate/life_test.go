package simulate

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// plain returns a generator of a format with many ids per tick.
func plain(m *Machine) (Generator, error) {
	return shaped(m, tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1 << 16})
}

func shaped(m *Machine, s tick.Shape) (Generator, error) {
	ids, err := tick.New(s, m.NewClock())
	if err != nil {
		return Generator{}, err
	}
	ids.Sleep = m.Sleep
	return Generator{Source: ids, IDs: func(n int, got Got) error {
		for n > 0 {
			milli, first, count, err := ids.Reserve(context.Background(), n)
			if err != nil {
				return err
			}
			for i := range count {
				got(milli, uint32(first+i))
			}
			n -= count
		}
		return nil
	}}, nil
}

// Ticks may be of any length up to a second.
func TestUnits(t *testing.T) {
	for _, unit := range []uint64{10, tick.MaxUnit} {
		t.Run(fmt.Sprint(unit, " ms"), func(t *testing.T) {
			shape := tick.Shape{First: 1_400_000_000_000, Last: 2_400_000_000_000, Unit: unit, PerTick: 256}
			c := Kept(func(m *Machine) (Generator, error) { return shaped(m, shape) })
			c.Unit, c.PerTick = unit, shape.PerTick
			Check(t, c, 100)
		})
	}
}

// A node makes ids twice, or ids that do not ascend, if a save is in one half of the file only, or
// if it does not see what another process has written. Otherwise the same lives find nothing.
func TestFinds(t *testing.T) {
	for name, c := range map[string]struct {
		disk  func(mark.Disk) mark.Disk
		finds bool
	}{
		"as it is":                         {func(d mark.Disk) mark.Disk { return d }, false},
		"a save in one half of the file":   {func(d mark.Disk) mark.Disk { return &halved{alone: alone{Disk: d}} }, true},
		"writes of others that are unseen": {func(d mark.Disk) mark.Disk { return &alone{Disk: d} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Kept(plain)
			config.New = func(m *Machine) Node {
				return &kept{m: m, disk: c.disk(m.Disk), made: []func(*Machine) (Generator, error){plain}}
			}
			found := Find(config, 1, 400, func(r Report) bool {
				if r.Duplicates+r.Disorders > 0 {
					t.Logf("%+v", r)
				}
				return r.Duplicates+r.Disorders > 0
			})
			if found != c.finds {
				t.Errorf("found %v", found)
			}
		})
	}
}

// alone is the disk of a process that sees only its own writes, once it has written.
type alone struct {
	mark.Disk
	data []byte // the file as the process sees it, or nil
}

func (d *alone) Read(path string, max int64) ([]byte, error) {
	if d.data != nil {
		return d.data, nil
	}
	return d.Disk.Read(path, max)
}

func (d *alone) Overwrite(path string, offset int64, data []byte) error {
	err := d.Disk.Overwrite(path, offset, data)
	if err == nil {
		err = d.put(path, offset, data)
	}
	return err
}

func (d *alone) put(path string, offset int64, data []byte) error {
	now, err := d.Read(path, math.MaxInt64)
	if err == nil {
		d.data = slices.Concat(now[:offset], data, now[int(offset)+len(data):])
	}
	return err
}

func (d *alone) Rename(from, to string) error {
	d.data = nil
	return d.Disk.Rename(from, to)
}

// halved is a disk that writes each save into one half only, first one and then the other.
type halved struct {
	alone
	at int64 // the offset of the last save
}

func (d *halved) Overwrite(path string, offset int64, data []byte) error {
	now, err := d.Read(path, math.MaxInt64)
	size := int64(len(data))
	switch at := size - d.at; {
	case err != nil:
		return err
	case bytes.Equal(now[offset:][:size], data): // makes it durable
		return d.Disk.Overwrite(path, offset, data)
	case bytes.Equal(now[size-offset:][:size], data): // the second half
	default:
		if d.data == nil {
			at = offset
		}
		if err := d.Disk.Overwrite(path, at, data); err != nil {
			return err
		}
		d.at = at
	}
	return d.put(path, offset, data)
}
