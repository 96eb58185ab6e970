package flake

import (
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Notional returns the id of a time with worker and sequence 0, the lowest that
// any worker can make in its millisecond: a bound for scans over ids. Times
// before 1970 count as 1970, and those beyond what [ID.Time] returns as the last
// that it does.
func Notional(t time.Time) ID { return Make(tick.MilliOf(t), 0, 0) }

// Span returns the lowest and the highest id of the milliseconds from first to
// last, both included: `WHERE id BETWEEN $1 AND $2`. With last before first
// the lowest is above the highest, and the scan finds nothing.
func Span(first, last time.Time) (lowest, highest ID) {
	return Notional(first), Make(tick.MilliOf(last), MaxWorker, 1<<16-1)
}
