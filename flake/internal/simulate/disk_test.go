package simulate

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
)

// After a power cut, each sector that was overwritten and not synced is old or new, and synced
// sectors are new. A kill keeps what was written.
func TestOverwriteCanTear(t *testing.T) {
	const path, sectors = "/file", 4
	before, now := bytes.Repeat([]byte{'a'}, sectors*sector), bytes.Repeat([]byte{'b'}, sectors*sector)
	cut, killed := map[string]bool{}, map[string]bool{}
	for seed := range uint64(2000) {
		m := newMachine(rand.New(rand.NewPCG(seed, 2)))
		d := m.Disk
		if err := d.Create(path, bytes.Repeat(before, 2)); err != nil {
			t.Fatal(err)
		}
		d.SyncDir("/")
		read, err := d.Read(path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		d.fails = syscall.ENOSPC // Overwrite needs no space
		d.armed = 1 + m.rng.IntN(5)
		ended := !crashed(func() {
			if err := d.Overwrite(path, sectors*sector, now); err != nil {
				t.Fatal(err)
			}
		})
		if !bytes.Equal(read, bytes.Repeat(before, 2)) {
			t.Fatal("the result of an earlier Read has changed")
		}
		seen := killed
		if seed%2 == 0 {
			if sure := d.sure(path); ended && !bytes.Equal(sure[sectors*sector:], now) {
				t.Errorf("seed %d: the durable content is %q", seed, sure)
			}
			d.powerCut()
			seen = cut
		}
		d.armed = 0
		read, err = d.Read(path, 1<<20)
		if err != nil || len(read) != 2*len(before) || !bytes.Equal(read[:len(before)], before) {
			t.Fatalf("seed %d: %q, %v", seed, read, err)
		}
		var pattern []byte
		for part := range slices.Chunk(read[len(before):], sector) {
			if bytes.Count(part, part[:1]) != sector {
				t.Fatalf("seed %d: a sector has %q", seed, part)
			}
			pattern = append(pattern, part[0])
		}
		if seen[string(pattern)] = true; ended && string(pattern) != "bbbb" {
			t.Errorf("seed %d: after the sync, the sectors have %q", seed, pattern)
		}
	}
	if len(cut) != 1<<sectors || len(killed) != sectors+1 {
		t.Errorf("after power cuts the sectors have %v, after kills %v", cut, killed)
	}
}

// Overwrite fails like other operations.
func TestOverwriteFails(t *testing.T) {
	m := newMachine(rand.New(rand.NewPCG(1, 2)))
	d := m.Disk
	if err := d.Overwrite("/none", 0, []byte("x")); err == nil {
		t.Error("a missing file is overwritten")
	}
	if err := d.Create("/file", []byte("abc")); err != nil {
		t.Fatal(err)
	}
	d.SyncDir("/")
	d.fails = syscall.EROFS
	if err := d.Overwrite("/file", 0, []byte("x")); err == nil {
		t.Error("a read-only disk is written to")
	}
	d.fails, d.lying = nil, true
	if err := d.Overwrite("/file", 0, []byte("x")); err != nil || string(d.sure("/file")) != "abc" {
		t.Errorf("on a disk that lies, the durable content is %q, %v", d.sure("/file"), err)
	}
}

// After a crash the number is the last one remembered, or one whose Remember did not return.
func TestNumberSurvives(t *testing.T) {
	crashes := 0
	for seed := range uint64(300) {
		m := newMachine(rand.New(rand.NewPCG(seed, 3)))
		var sure, tried uint64
		life := func() {
			marks, err := durable.OpenMarksOn(m.Disk, m.Sleep, Path, nil, 0)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			defer marks.Close()
			token := uint64(0)
			if n := marks.Number(); n != nil {
				token = n.Token
			}
			if token < sure || token > tried {
				t.Fatalf("seed %d: the number is %d, want %d to %d", seed, token, sure, tried)
			}
			m.Disk.armed = 1 + m.rng.IntN(60)
			for range 10 {
				tried++
				if err := marks.Remember(&mark.Number{Prefix: strings.Repeat("/", 3*sector), Token: tried}); err != nil {
					t.Fatal(err)
				}
				sure = tried
			}
		}
		for range 10 {
			if crashed(life) {
				crashes++
			}
			m.Disk.armed = 0
			if m.rng.IntN(2) == 0 {
				m.Disk.powerCut()
			}
			clear(m.Disk.locked)
		}
	}
	if crashes < 1000 {
		t.Errorf("only %d crashes", crashes)
	}
}
