package idhttp

import (
	"crypto/tls"
	"fmt"
	"slices"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/inspect"
	"github.com/flake-go/flake/node/traffic"
)

// Node describes the node around the generators. If a function is nil, its result is
// unknown.
type Node struct {
	Name    string
	Address string // the address on which it listens for other nodes
	Version string
	Commit  string // the commit that it was built from; empty if unknown

	TLS     func() *tls.Config    // the settings for other nodes
	Traffic func() traffic.Counts // counts since the start
	Peers   func() []traffic.Peer // the connected nodes
}

// maxPeers bounds the nodes that the page lists.
const maxPeers = 100

// state is what the page shows and events update, as text.
type state struct {
	Name, Address, Version string
	Uptime                 string
	Troubles               []trouble
	Total                  string // of ids
	Chart, Errors          chart  // of ids and of errors
	CallsRefused           string
	CallersRefused         string
	Latencies              []latencyState // for the doors that were called in the last minute
	Recent                 []event
	Generators             []generatorState
	Peers                  []peerState
	PeerCount, MorePeers   int
	Received, Sent         string
}

type generatorState struct {
	Name, Format           string
	Who                    []inspect.Text // the worker, one element per field of the format
	From, Until, Left, Err string         // of the worker; empty if unknown
	IDs, Rate              string
	Calls, Waits, Refusals string
	Clock, Last, LastAgo   string
	Mark, MarkAhead        string // empty if no mark is kept
	Late                   bool   // whether the mark is behind the clock
	InTrouble              bool
	Track                  track
}

// Status describes the state of the generators in a few words.
func (v *state) Status() string {
	n := 0
	for i := range v.Generators {
		if v.Generators[i].InTrouble {
			n++
		}
	}
	switch {
	case n == 0:
		return "Handing out ids"
	case len(v.Generators) == 1:
		return "In trouble"
	}
	return fmt.Sprintf("%d of %d generators in trouble", n, len(v.Generators))
}

type peerState struct{ Name, Address, Since, Rate string }

func (d *Door) state(now time.Time) *state {
	all := d.samples.get()
	ids := ratesOf(all, func(one *sample) (sum uint64) {
		for _, n := range one.ids {
			sum += n
		}
		return sum
	})
	v := &state{
		Name: d.Node.Name, Address: d.Node.Address, Version: d.Node.Version,
		Uptime: inspect.Span(now.Sub(d.started).Milliseconds()), Chart: ids.chart("Ids"),
	}
	total, refusals := uint64(0), uint64(0)
	for i := range d.Generators {
		what, err := d.Generators[i].trouble() // before state: trouble advances a mark that is behind
		stats := d.Generators[i].Server.Stats()
		g := d.Generators[i].state(now, stats)
		since := d.onsets.note(i, err, now)
		if g.InTrouble = err != nil; g.InTrouble {
			v.Troubles = addTrouble(v.Troubles, g.Name, what, err, since, now)
		}
		g.Rate = thousands(ratesOf(all, func(one *sample) uint64 { return one.ids[i] }).rate())
		total += stats.IDs
		refusals += stats.Refusals
		v.Generators = append(v.Generators, g)
	}
	v.Total = thousands(total)
	t := d.Node.Traffic()
	v.Received, v.Sent = size(t.Received), size(t.Sent)
	errors := ratesOf(all, func(one *sample) uint64 { return one.errors })
	v.Errors = errors.chart("Errors")
	v.CallsRefused, v.CallersRefused = thousands(refusals), thousands(d.callersRefused(t))
	v.Latencies = lastMinute(all)
	v.Recent = d.Recent.state()
	peers := d.peers.update(now, d.Node.Peers)
	for _, p := range peers[:min(len(peers), maxPeers)] {
		since := inspect.Span(now.Sub(p.Since).Milliseconds())
		v.Peers = append(v.Peers, peerState{plain(p.Name), p.Address.String(), since, thousands(p.rate)})
	}
	v.PeerCount, v.MorePeers = len(peers), len(peers)-len(v.Peers)
	return v
}

// latencyState describes how long a door's answers took.
type latencyState struct{ Door, Rate, Half, Most string }

// lastMinute returns the latencies of the last minute, for the doors that were called in it.
func lastMinute(all []sample) (states []latencyState) {
	all = all[max(0, len(all)-1-minute):]
	if len(all) < 2 {
		return nil
	}
	for door, name := range []string{"Erlang", "HTTP"} {
		c := all[len(all)-1].latencies[door].Since(all[0].latencies[door])
		if n := c.Total(); n > 0 {
			rate := thousands(n / uint64(len(all)-1))
			states = append(states, latencyState{name, rate, within(c, .5), within(c, .99)})
		}
	}
	return states
}

// callersRefused returns how many callers both doors refused, or disconnected because of their behavior.
func (d *Door) callersRefused(t traffic.Counts) uint64 {
	n := d.refused.Load()
	for _, counts := range []map[string]uint64{t.HandshakeFailures, t.Closes} {
		for _, count := range counts {
			n += count
		}
	}
	return n
}

func (g *Generator) state(now time.Time, stats idserver.Stats) generatorState {
	ids, calls := g.Server.IDs, uint64(0)
	for _, c := range stats.Calls {
		calls += c.Calls
	}
	v := generatorState{
		Name: g.Name, Format: ids.Format().Name, Who: who(ids),
		IDs: thousands(stats.IDs), Calls: thousands(calls),
		Waits: thousands(stats.Waits), Refusals: thousands(stats.Refusals),
	}
	o := g.Server.Origin()
	if v.From = o.From; !o.Until.IsZero() {
		v.Until, v.Left = clock(o.Until), inspect.Span(o.Until.Sub(now).Milliseconds())
	}
	if o.Err != nil {
		v.Err = o.Err.Error()
	}
	milli, _ := ids.Last()
	last, mark := time.UnixMilli(int64(milli)), ids.Mark()
	v.Clock, v.Last, v.LastAgo = clock(now), clock(last), inspect.Span(now.Sub(last).Milliseconds())+" ago"
	switch {
	case milli <= ids.Format().Fields(formats.Number{})[0].Value: // the epoch
		v.Last, v.LastAgo = "", "none yet"
	case last.After(now):
		v.LastAgo = "ahead of the clock"
	}
	if !mark.IsZero() {
		ahead := mark.Sub(now)
		v.Mark, v.MarkAhead = clock(mark), seconds(ahead)+" ahead"
		if v.Late = ahead < 0; v.Late {
			v.MarkAhead = seconds(-ahead) + " behind the clock"
		}
	}
	v.Track = trackOf(now, last, mark)
	return v
}

// who returns the worker of a source, as one Text for each of the worker's fields in the format.
func who(ids formats.Source) []inspect.Text {
	id, fields := ids.Worker(), formats.Who(ids.Format().Fields(formats.Number{}))
	all := make([]inspect.Text, len(fields))
	for i, f := range slices.Backward(fields) {
		f.Value = id & (1<<f.Width - 1)
		id >>= f.Width
		text, _ := inspect.Value(f, time.Time{})
		all[i] = inspect.Text{Name: f.Name, Text: text}
	}
	return all
}
