package flakeserver

import "time"

// Info is what a server is, and has done since it started.
type Info struct {
	Format  string
	Worker  uint64
	Last    uint64    // time of the last id, ms since 1970
	Mark    time.Time // that no id is later than; zero if none is kept
	Uptime  time.Duration
	Version string
	Stats   Stats
}

// Stats are counts since the start.
type Stats struct {
	IDs      uint64      // handed out, or leased
	Waits    uint64      // for the next tick, as those of one were used up
	Refusals uint64      // calls answered with an error
	Calls    []CallCount // one for each kind and result that there was
}

// CallCount is how many calls of a kind came to the same result.
type CallCount struct {
	Op     Op
	Result string // "ok", or the error's word, such as "badarg"
	Calls  uint64
}
