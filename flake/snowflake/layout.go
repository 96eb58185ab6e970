package snowflake

import (
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// The most bits of a layout.
const (
	maxLow   = 22 // below the time
	maxTime  = 46
	maxID    = 64
	maxTicks = 63 // of time and sequence
)

// Layout is how the bits of an id are shared out: Time, then Datacenter, Worker and
// Sequence, which together have 22 at most. Those above the time are 0, so with fewer
// bits in all ids are smaller numbers: with 53, they are those that JavaScript has.
// Datacenter and Worker make up the machine; a layout that does not tell the two
// apart has Datacenter 0.
type Layout struct {
	Time       uint8  // 1 to 46; 41 lasts for 69 years
	Datacenter uint8  // 0 to 22
	Worker     uint8  // 0 to 22
	Sequence   uint8  // 0 to 22
	Epoch      uint64 // what time is counted from: milliseconds since 1970-01-01 UTC
}

// The layouts in use. Copies may have another Epoch, and other bits, such as
// Worker 6 and Sequence 16.
var (
	Twitter = Layout{Time: 41, Worker: 10, Sequence: 12, Epoch: 1288834974657}
	Idgen   = Layout{Time: 42, Datacenter: 5, Worker: 5, Sequence: 12}
)

// Check returns what is wrong with a layout, or nil.
func (l Layout) Check() error {
	switch {
	case l.Time < 1 || l.Time > maxTime:
		return fmt.Errorf("flake: %d bits of time, where a snowflake has 1 to %d", l.Time, maxTime)
	case int(l.Datacenter)+int(l.Worker)+int(l.Sequence) > maxLow:
		return fmt.Errorf("flake: %d bits of datacenter, %d of worker and %d of sequence, where a snowflake has at most %d in all",
			l.Datacenter, l.Worker, l.Sequence, maxLow)
	case l.Time+l.low() > maxID:
		return fmt.Errorf("flake: %d bits of time and %d below it, where an id has %d", l.Time, l.low(), maxID)
	case l.Time+l.Sequence > maxTicks:
		return fmt.Errorf("flake: %d bits of time and %d of sequence, where a snowflake has at most %d", l.Time, l.Sequence, maxTicks)
	case l.Epoch > tick.MaxLast-l.span():
		return fmt.Errorf("flake: an epoch at %d ms since 1970, where at most %d can be counted", l.Epoch, tick.MaxLast-l.span())
	}
	return nil
}

// low is how many bits there are below the time.
func (l Layout) low() uint8 { return l.Datacenter + l.Worker + l.Sequence }

// span is the highest time that an id can have.
func (l Layout) span() uint64 { return 1<<l.Time - 1 }

// Last is the last millisecond that an id can have: there are none after it.
func (l Layout) Last() time.Time { return time.UnixMilli(int64(l.Epoch + l.span())).UTC() }

func inWords(milli uint64) string {
	return time.UnixMilli(int64(milli)).UTC().Format(time.RFC3339Nano)
}

// Machine tells the generators of a layout apart: 0 to 1023 in [Twitter] and [Idgen].
type Machine uint32

// Machine returns the machine of a datacenter and a worker, each 0 to 31 in [Idgen].
// What does not fit, or a layout that is none, is an error.
func (l Layout) Machine(datacenter, worker int) (Machine, error) {
	switch err := l.Check(); {
	case err != nil:
		return 0, err
	case datacenter>>l.Datacenter != 0:
		return 0, fmt.Errorf("flake: datacenter %d, where 0 to %d fit", datacenter, 1<<l.Datacenter-1)
	case worker>>l.Worker != 0:
		return 0, fmt.Errorf("flake: worker %d, where 0 to %d fit", worker, 1<<l.Worker-1)
	}
	return Machine(datacenter<<l.Worker | worker), nil
}

func (l Layout) checkMachine(m Machine) error {
	if most := Machine(1)<<(l.Datacenter+l.Worker) - 1; m > most {
		return fmt.Errorf("flake: machine %d, where 0 to %d fit", m, most)
	}
	return nil
}

// Parts is what is in an id.
type Parts struct {
	Milli      uint64  // when it was made: milliseconds since 1970-01-01 UTC
	Machine    Machine // Datacenter and Worker as one number
	Datacenter int
	Worker     int
	Sequence   uint32
}

// Time is Milli in UTC.
func (p Parts) Time() time.Time { return time.UnixMilli(int64(p.Milli)).UTC() }

// Decompose takes an id of the layout apart. An id with a bit set above the time
// is none; that bit then counts as time.
func (l Layout) Decompose(id ID) Parts {
	machine := Machine(id >> l.Sequence & (1<<(l.Datacenter+l.Worker) - 1))
	return Parts{
		Milli:      l.Epoch + uint64(id)>>l.low(),
		Machine:    machine,
		Datacenter: int(machine >> l.Worker),
		Worker:     int(machine & (1<<l.Worker - 1)),
		Sequence:   uint32(id & (1<<l.Sequence - 1)),
	}
}

// Make puts an id together from milliseconds since 1970-01-01 UTC, the machine
// and the sequence: the reverse of [Layout.Decompose]. What does not fit, or a
// layout that is none, is an error. A [Generator] is what makes new ids.
func (l Layout) Make(milli uint64, machine Machine, sequence uint32) (ID, error) {
	switch err := l.Check(); {
	case err != nil:
		return 0, err
	case milli-l.Epoch > l.span(): // or, wrapped around, before the epoch
		return 0, fmt.Errorf("flake: %d ms since 1970, where %d to %d fit", milli, l.Epoch, l.Epoch+l.span())
	case sequence>>l.Sequence != 0:
		return 0, fmt.Errorf("flake: sequence %d, where 0 to %d fit", sequence, 1<<l.Sequence-1)
	}
	if err := l.checkMachine(machine); err != nil {
		return 0, err
	}
	return ID((milli-l.Epoch)<<l.low() | uint64(machine)<<l.Sequence | uint64(sequence)), nil
}

// Notional is the id of a time with machine and sequence 0, the lowest that
// any machine can make in its millisecond: a bound for scans over ids. Times
// that no id can have count as the nearest that one can.
func (l Layout) Notional(t time.Time) ID { return ID(l.since(t) << l.low()) }

// Span returns the lowest and the highest id of the milliseconds from first to
// last, both included: `WHERE id BETWEEN $1 AND $2`. With last before first the
// lowest is above the highest, and the scan finds nothing.
func (l Layout) Span(first, last time.Time) (lowest, highest ID) {
	return l.Notional(first), l.Notional(last) | (1<<l.low() - 1)
}

func (l Layout) since(t time.Time) uint64 {
	return min(max(tick.MilliOf(t), l.Epoch)-l.Epoch, l.span())
}
