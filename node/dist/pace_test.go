package dist

import (
	"testing"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// hearAll has the pace hear calls by so many processes in turn.
func (p *pace) hearAll(processes, calls int) {
	for i := range calls {
		p.heard([]byte(etf.NewPid(there, uint32(i%processes), 0, 1)))
	}
}

// To gather is worth it for many callers, if it spares sleeps.
func TestGather(t *testing.T) {
	for name, test := range map[string]struct {
		processes       int
		alone, together int           // frames a read, without and with a sleep before
		always          bool          // there is more to read without a sleep
		took            time.Duration // to gather
		gathers         bool
	}{
		"one caller":               {1, 1, 3, false, overslept, false},
		"a few":                    {crowd - 1, 1, 9, false, overslept, false},
		"many":                     {64, 1, 12, false, overslept, true},
		"many, in larger segments": {64, 3, 12, false, overslept, true},
		"nothing gained":           {64, 3, 5, false, overslept, false},
		"plenty comes anyway":      {64, plenty + 1, 4 * plenty, false, overslept, false},
		"woken too late":           {64, 1, 12, false, overslept + 1, false},
		"a busy machine":           {64, 9, 15, true, overslept, false},
	} {
		t.Run(name, func(t *testing.T) {
			const reads = 100 * probe
			var p pace
			gathered, now := 0, time.Now()
			for range reads {
				now = now.Add(aWhile / 16)
				p.hearAll(test.processes, 2*test.processes)
				if p.gather(now) {
					p.woke(now, test.took)
					p.sleeps(toGather)
					p.frames += test.together
					gathered++
					continue
				}
				if !test.always {
					p.sleeps(forWant)
				}
				p.frames += test.alone
			}
			// One read in so many is a probe, and the averages have to be found.
			if test.gathers != (gathered > reads*2/3) || test.gathers == (gathered < reads/3) {
				t.Errorf("gathered before %d of %d reads", gathered, reads)
			}
		})
	}
}

// To linger is not for a busy machine, for a while.
func TestLingerTooLate(t *testing.T) {
	now := time.Now()
	for took, want := range map[time.Duration]bool{overslept: true, overslept + 1: false} {
		var p pace
		p.woke(now, took)
		p.linger(now.Add(aWhile - time.Microsecond))
		if got := p.linger(now.Add(aWhile)); got != want {
			t.Errorf("after a wait of %v: %t", took, got)
		}
		if !p.linger(now.Add(aWhile + time.Microsecond)) {
			t.Errorf("never again after a wait of %v", took)
		}
	}
}

// To linger is for who is sent something all the time.
func TestLinger(t *testing.T) {
	var p pace
	now := time.Now()
	for i, test := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {time.Microsecond, true}, {lately - 1, true}, {lately, false}, {time.Hour, false}, {0, true}} {
		now = now.Add(test.after)
		if got := p.linger(now); got != test.want {
			t.Errorf("%d: %v after the last time: %t", i, test.after, got)
		}
	}
}
