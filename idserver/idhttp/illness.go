package idhttp

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flake-go/flake/idserver/inspect"
)

// illness is what some of the generators suffer from: one reason, and the same
// remedy.
type illness struct {
	Names  string // of the generators
	What   string // is wrong with the first
	Since  string
	Remedy string

	reason string
	names  []string
	since  time.Time
}

// remedies are what people can do, by reason.
var remedies = map[string]string{
	"clock_running_backwards": "Ids go on by themselves once the clock has passed the last one. Until then see what has set " +
		"it: whether it is right now, and whether NTP keeps it. If it was far ahead and the last id is, start the node with another " +
		"timestamp_path and a worker id that nobody has had to have ids sooner; they are below the last then.",
	"timestamp_not_saved": "See whether there is room on the disk of timestamp_path, and whether the node may write there. " +
		"Ids go on by themselves once the time can be saved.",
	"noproc":   "Start the node again, and report it please: its supervisor should have started the server.",
	"shutdown": "The node is about to end. Start it again, unless it is meant to.",
}

// fallIll adds a generator's illness to those there are.
func fallIll(all []illness, name, reason, what string, since time.Time) []illness {
	for i := range all {
		if ill := &all[i]; ill.reason == reason {
			ill.names = append(ill.names, name)
			if since.Before(ill.since) {
				ill.since = since
			}
			return all
		}
	}
	return append(all, illness{What: what, Remedy: remedies[reason], reason: reason, names: []string{name}, since: since})
}

// tell writes it out.
func (ill *illness) tell(now time.Time) {
	const most = 3
	names := ill.names[:min(len(ill.names), most)]
	ill.Names = strings.Join(names, ", ")
	if more := len(ill.names) - len(names); more > 0 {
		ill.Names += " and " + strconv.Itoa(more) + " more"
	}
	ill.Since = ill.since.UTC().Format("2006-01-02 15:04:05") + " UTC, for " + inspect.Span(now.Sub(ill.since).Milliseconds())
}

// troubles are since when each generator has been in trouble, and for what reason.
type troubles struct {
	mu  sync.Mutex
	all []trouble
}

type trouble struct {
	reason string // empty: in none
	since  time.Time
}

// note takes what the trouble of a generator is now, and returns since when it has been
// that.
func (t *troubles) note(i int, reason string, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[i].reason != reason {
		t.all[i] = trouble{reason, now}
	}
	return t.all[i].since
}
