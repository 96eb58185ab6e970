package sno

import (
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Notional is the lowest id of a time: a bound for scans over ids. A time
// before 2010 counts as the first that ids have, one after 2079 as the last.
func Notional(t time.Time) ID { return join(clamp(t), 0, 0) }

// Span returns the lowest and the highest id of the times from first to last, both
// included, to 4 ms: `WHERE id BETWEEN $1 AND $2`. With last before first the
// lowest is above the highest, and the scan finds nothing.
func Span(first, last time.Time) (lowest, highest ID) {
	return Notional(first), join(clamp(last), 1<<25-1, 1<<16-1)
}

func clamp(t time.Time) uint64 { return min(max(tick.MilliOf(t), Epoch), MaxMilli) }
