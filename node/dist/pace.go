package dist

import (
	"encoding/binary"
	"time"
)

// pace decides how a connection's reader waits for what comes next.
//
// A BEAM sends the three messages of a call in segments of their own. Whoever
// reads each at once is woken for each, answers one call a write, and so wakes
// the peer as often: that costs both sides more than the calls. Two remedies:
//
//   - One or a few who call and wait send the next message a moment after the
//     answer. To look again for that moment is cheaper than to sleep and be woken:
//     the reader lingers, as long as it was sent something lately.
//   - Many who call together can wait that moment. The reader gathers: it sleeps
//     before it reads, as long as there are then at least twice as many frames a
//     sleep as when it sleeps only for want of any, and is woken in time.
//
// Neither is done for callers that need no help: because much arrives while it
// handles what is there, or nothing does soon.
type pace struct {
	recent    [crowd - 1]uint64 // who called last, by the numbers of the pids
	calls     uint
	strangers average // share of calls by others than those

	reads   uint
	frames  int        // since the last sleep
	slept   reason     // for that
	brought [2]average // frames a sleep, by its reason
	late    time.Time  // when it was woken too late
	lacked  time.Time  // when a read last found nothing
}

// reason is why a reader sleeps.
type reason uint8

const (
	forWant reason = iota // of frames
	toGather
)

const (
	crowd  = 5  // callers at a time who can wait for each other
	plenty = 48 // frames a sleep that gathering would not better
	probe  = 16 // one time in so many it goes the other way, to see what that brings
)

const (
	// lately is how long ago a lingering reader was last out of frames.
	lately = 10 * time.Millisecond

	// overslept is how long a wait to gather or to linger may take; after a longer
	// one neither is tried for a while. Others wait for the processor then: frames
	// gather by themselves, and who yields it is the last to have it again.
	overslept = 250 * time.Microsecond
	aWhile    = 100 * time.Millisecond
)

// average is a moving average, scaled.
type average int

const averageOne average = 1 << 8

func (a *average) add(n int) { *a += (average(n)*averageOne - *a) / 8 }

// heard notes a call, or another message, by a process.
func (p *pace) heard(pid []byte) {
	const numbers = 12 // ID, serial, creation end a pid
	if len(pid) < numbers {
		return
	}
	who := binary.BigEndian.Uint64(pid[len(pid)-numbers:])
	stranger := 1
	for _, r := range p.recent {
		if r == who {
			stranger = 0
		}
	}
	p.strangers.add(stranger)
	p.recent[p.calls%uint(len(p.recent))] = who
	p.calls++
}

func (p *pace) crowded() bool { return p.strangers > averageOne/2 }

// gather tells whether to sleep before the next read. It is asked before each.
func (p *pace) gather(now time.Time) bool {
	p.reads++
	gather := false
	if p.crowded() && now.Sub(p.late) > aWhile && p.brought[forWant] < plenty*averageOne {
		gather = p.brought[toGather] >= 2*p.brought[forWant] != (p.reads%probe == 0)
	}
	if !gather && p.slept == toGather {
		p.sleeps(forWant) // from now on, if at all
	}
	return gather
}

// sleeps is told that the reader goes to sleep.
func (p *pace) sleeps(why reason) {
	if p.frames > 0 {
		p.brought[p.slept].add(p.frames)
	}
	p.frames, p.slept = 0, why
}

// woke is told how long a wait to gather or to linger took.
func (p *pace) woke(now time.Time, took time.Duration) {
	if took > overslept {
		p.late = now
	}
}

// linger tells, when a read has found nothing, whether to look for more before
// going to sleep.
func (p *pace) linger(now time.Time) bool {
	before := p.lacked
	p.lacked = now
	return now.Sub(before) < lately && now.Sub(p.late) > aWhile && !p.crowded()
}
