package simulate

import (
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flake-go/flake/flake/internal/mark"
)

// Two processes use one file without a lock, and each operation on the disk may be followed by
// operations of the other process. A process may use the times after the mark that it read or last
// saved, up to the mark that it saved. No time is used by both, and once both have saved, the first
// does not save again.
func TestTwoProcesses(t *testing.T) {
	results := map[string]int{}
	cases := map[string][3]int{ // saves of the first before and at the same time, and of the second
		"one that runs, and one that starts": {1, 1, 1},
		"the other runs on":                  {1, 1, 2},
	}
	if *simTimes > 1 {
		cases["both start"] = [3]int{0, 1, 1}
	}
	for name, saves := range cases {
		t.Run(name, func(t *testing.T) {
			orders := 0
			for order := []int{}; order != nil; order = following(order) {
				order = play(t, order, nil, results, saves)
				if orders++; t.Failed() {
					t.Fatalf("in the order %v", order)
				}
			}
			t.Logf("%d orders", orders)
		})
	}
	t.Run("random", func(t *testing.T) {
		for seed := range uint64(3000) {
			rng := rand.New(rand.NewPCG(seed, 4))
			order := play(t, nil, rng, results, [3]int{rng.IntN(2), 1 + rng.IntN(4), 1 + rng.IntN(4)})
			if t.Failed() {
				t.Fatalf("seed %d: in the order %v", seed, order)
			}
		}
	})
	t.Logf("%v", results)
	for _, result := range []string{"both failed", "the first failed", "the second failed", "none failed"} {
		if results[result] == 0 {
			t.Errorf("in no order %s", result)
		}
	}
}

// following returns the order after order, in which 0 and 1 are the processes, or nil.
func following(order []int) []int {
	for i, which := range slices.Backward(order) {
		if which == 0 {
			return append(slices.Clone(order[:i]), 1)
		}
	}
	return nil
}

// player is a process: its next operation on the disk, and the times that it may use.
type player struct {
	next   func() (struct{}, bool)
	stop   func()
	used   [][2]uint64
	failed bool
}

// play runs two processes. The first saves a few times alone; then both save. They perform operations
// in the given order, and after it at random or, without rng, the first one while it can. It returns
// the whole order of operations that could have been performed by either process.
func play(t *testing.T, order []int, rng *rand.Rand, results map[string]int, saves [3]int) (done []int) {
	t.Helper()
	m := newMachine(rand.New(rand.NewPCG(1, 4)))
	m.Disk.unlocked = true
	before, _, err := mark.Open(m.Disk, Path)
	if err == nil {
		err = before.Save(until(10))
	}
	if err != nil {
		t.Fatal(err)
	}
	now := uint64(10)
	var savers []int // the process of each save
	var both [2]*player
	for i := range both {
		p := &player{}
		p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
			alone := saves[0] * (1 - i)
			d := &stepped{Disk: m.Disk, split: rng != nil}
			if alone == 0 {
				d.yield = yield
			}
			f, c, err := mark.Open(d, Path)
			if err != nil {
				t.Error(err)
				return
			}
			after := c.Marks[""].Milli
			for n := range alone + saves[1+i] {
				if n == alone {
					d.yield = yield
				}
				now++
				to := max(after+1, now+3)
				switch err := f.Save(until(to)); {
				case errors.Is(err, mark.ErrShared):
					p.failed = true
					return
				case err != nil:
					t.Error(err)
				default:
					p.used, savers = append(p.used, [2]uint64{after, to}), append(savers, i)
					after = to
				}
			}
		})
		defer p.stop()
		both[i] = p
		if i == 0 {
			p.next() // to the first operation that the other one can precede
		}
	}
	over := [2]bool{}
	for !over[0] || !over[1] {
		now++
		which := 0
		if over[0] || over[1] {
			if over[0] {
				which = 1
			}
		} else {
			switch {
			case len(done) < len(order):
				which = order[len(done)]
			case rng != nil:
				which = rng.IntN(2)
			}
			done = append(done, which)
		}
		_, more := both[which].next()
		over[which] = !more
	}
	for _, a := range both[0].used {
		for _, b := range both[1].used {
			if a[0] < b[1] && b[0] < a[1] {
				t.Errorf("one process may use the times %v, the other %v", both[0].used, both[1].used)
			}
		}
	}
	if turns := slices.Compact(savers); len(turns) > 2 {
		t.Errorf("the processes saved alternately: %v", turns)
	}
	results[map[[2]bool]string{{true, true}: "both failed", {true, false}: "the first failed",
		{false, true}: "the second failed", {}: "none failed"}[[2]bool{both[0].failed, both[1].failed}]]++
	return done
}

func until(milli uint64) mark.Content {
	return mark.Content{Marks: map[string]mark.Mark{"": {Milli: milli, Latest: milli}}}
}

// stepped is a disk that calls yield, unless it is nil, before each operation and, if split is set,
// between the halves of a file that it reads.
type stepped struct {
	*Disk
	yield func(struct{}) bool
	split bool
}

func (d *stepped) step() {
	if d.yield != nil && !d.yield(struct{}{}) {
		panic(crash{})
	}
}

func (d *stepped) Read(path string, max int64) ([]byte, error) {
	d.step()
	first, err := d.Disk.Read(path, max)
	if err != nil || !d.split {
		return first, err
	}
	d.step()
	second, err := d.Disk.Read(path, max)
	return slices.Concat(first[:len(first)/2], second[len(second)/2:]), err
}

func (d *stepped) Overwrite(path string, offset int64, data []byte) error {
	d.step()
	return d.Disk.Overwrite(path, offset, data)
}

func (d *stepped) SyncDir(path string) error {
	d.step()
	return d.Disk.SyncDir(path)
}
