package flake

import "time"

// Notional gives the id of a time with worker and sequence 0, the lowest that
// any worker can make in its millisecond: a bound for scans over ids. Times
// before 1970 count as 1970.
func Notional(t time.Time) ID { return Make(milliOf(t), 0, 0) }

// Span gives the lowest and the highest id of the milliseconds from first to
// last, both included: `WHERE id BETWEEN $1 AND $2`. With last before first
// the lowest is above the highest, and the scan finds nothing.
func Span(first, last time.Time) (lowest, highest ID) {
	return Notional(first), Make(milliOf(last), MaxWorker, 1<<16-1)
}

func milliOf(t time.Time) uint64 { return uint64(max(t.UnixMilli(), 0)) }
