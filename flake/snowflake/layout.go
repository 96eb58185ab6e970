package snowflake

import (
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// low is how many bits there are below the time, in every layout.
const low = 22

// Layout is how the 64 bits of an id are shared out: Time, then Datacenter,
// Worker and Sequence, which together have 22. Datacenter and Worker make up the
// machine; a layout that does not tell the two apart has Datacenter 0.
type Layout struct {
	Time       uint8  // 41, which leaves the highest bit 0; or 42
	Datacenter uint8  // 0 to 22
	Worker     uint8  // 0 to 22
	Sequence   uint8  // 0 to 16
	Epoch      uint64 // what time is counted from: milliseconds since 1970-01-01 UTC
}

// The layouts in use. Copies may have another Epoch, and of Twitter another
// split, such as Worker 6 and Sequence 16.
var (
	Twitter = Layout{Time: 41, Worker: 10, Sequence: 12, Epoch: 1288834974657}
	Idgen   = Layout{Time: 42, Datacenter: 5, Worker: 5, Sequence: 12}
)

// Check returns what is wrong with a layout, or nil.
func (l Layout) Check() error {
	switch {
	case l.Time != 41 && l.Time != 42:
		return fmt.Errorf("flake: %d bits of time, where a snowflake has 41 or 42", l.Time)
	case l.Sequence > 16 || int(l.Datacenter)+int(l.Worker)+int(l.Sequence) != low:
		return fmt.Errorf("flake: %d bits of datacenter, %d of worker and %d of sequence, where a snowflake has 22 in all, and of the sequence at most 16",
			l.Datacenter, l.Worker, l.Sequence)
	case l.Epoch > tick.MaxLast-l.span():
		return fmt.Errorf("flake: an epoch at %d ms since 1970, where at most %d can be counted", l.Epoch, tick.MaxLast-l.span())
	}
	return nil
}

// span is the highest time that an id can have.
func (l Layout) span() uint64 { return 1<<l.Time - 1 }

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
	Sequence   uint16
}

// Time is Milli in UTC.
func (p Parts) Time() time.Time { return time.UnixMilli(int64(p.Milli)).UTC() }

// Decompose takes an id of the layout apart. Of a layout of 41 bits of time, an
// id with the highest bit set is none; that bit then counts as time.
func (l Layout) Decompose(id ID) Parts {
	machine := Machine(id >> l.Sequence & (1<<(low-l.Sequence) - 1))
	return Parts{
		Milli:      l.Epoch + uint64(id)>>low,
		Machine:    machine,
		Datacenter: int(machine >> l.Worker),
		Worker:     int(machine & (1<<l.Worker - 1)),
		Sequence:   uint16(id & (1<<l.Sequence - 1)),
	}
}

// Make puts an id together from milliseconds since 1970-01-01 UTC, the machine
// and the sequence: the reverse of [Layout.Decompose]. What does not fit, or a
// layout that is none, is an error. A [Generator] is what makes new ids.
func (l Layout) Make(milli uint64, machine Machine, sequence uint16) (ID, error) {
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
	return ID((milli-l.Epoch)<<low | uint64(machine)<<l.Sequence | uint64(sequence)), nil
}

// Notional is the id of a time with machine and sequence 0, the lowest that
// any machine can make in its millisecond: a bound for scans over ids. Times
// that no id can have count as the nearest that one can.
func (l Layout) Notional(t time.Time) ID { return ID(l.since(t) << low) }

// Span returns the lowest and the highest id of the milliseconds from first to
// last, both included: `WHERE id BETWEEN $1 AND $2`. With last before first the
// lowest is above the highest, and the scan finds nothing.
func (l Layout) Span(first, last time.Time) (lowest, highest ID) {
	return l.Notional(first), l.Notional(last) | (1<<low - 1)
}

func (l Layout) since(t time.Time) uint64 {
	return min(max(tick.MilliOf(t), l.Epoch)-l.Epoch, l.span())
}
