package idhttp

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/inspect"
	"github.com/flake-go/flake/node/latency"
)

// Node is what the node is, and what it can tell of others. A function that is
// nil tells nothing.
type Node struct {
	Name    string
	Address string // where it listens for other nodes
	Version string
	Commit  string // that it was built from; empty: nobody knows

	// CertificateEnds returns when the one for other nodes does.
	CertificateEnds func() time.Time

	// Traffic returns what there has been since the start.
	Traffic func() Traffic
	// Peers returns the nodes that are connected.
	Peers func() []Peer
}

// Peer is a connected node.
type Peer struct {
	Name    string
	Address net.Addr
	Since   time.Time
	IDs     uint64 // that it has taken since
}

// Traffic is what the node has had to do with others since its start.
type Traffic struct {
	Connections       int               // now
	Connected         uint64            // handshakes that came to a connection
	Received, Sent    uint64            // bytes, of all connections
	HandshakeFailures map[string]uint64 // by reason
	Closes            map[string]uint64 // connections that were ended for what the peer did, by reason
	Latency           latency.Counts    // of the answers to calls
}

func (s *Server) traffic() Traffic {
	if s.Node.Traffic == nil {
		return Traffic{}
	}
	return s.Node.Traffic()
}

// maxPeers bounds the nodes that the page lists.
const maxPeers = 100

// state is what the page shows and events renew, ready to be read.
type state struct {
	Name, Address, Version string
	Uptime                 string
	Ill                    []illness
	Rate, Peak, Total      string // ids a second now, at most, and ids in all
	Chart                  chart
	Errors                 errorState
	Latencies              []latencyState // of the doors that were called in the last minute
	Recent                 []eventState
	Generators             []generatorState
	Peers                  []peerState
	PeerCount, MorePeers   int
	Received, Sent         string
}

type generatorState struct {
	Name, Format           string
	Who                    []labelled // as whom it makes ids
	Origin                 originState
	IDs, Rate              string
	Calls, Waits, Refusals string
	Clock, Last, LastAgo   string
	Mark, MarkAhead        string // empty if none is kept
	Late                   bool   // the mark is behind the clock
	Ill                    bool
	Track                  track
}

// originState is where the worker came from; what is not known is empty.
type originState struct{ From, Until, Left, Err string }

func originOf(o idserver.Origin, now time.Time) (v originState) {
	v.From = o.From
	if !o.Until.IsZero() {
		v.Until, v.Left = clock(o.Until), inspect.Span(o.Until.Sub(now).Milliseconds())
	}
	if o.Err != nil {
		v.Err = o.Err.Error()
	}
	return v
}

// tabled is from how many generators on they are the rows of a table.
const tabled = 4

// Tabled tells whether the generators are rows.
func (v *state) Tabled() bool { return len(v.Generators) >= tabled }

// Status is how the generators are, in a few words.
func (v *state) Status() string {
	ill := 0
	for i := range v.Generators {
		if v.Generators[i].Ill {
			ill++
		}
	}
	switch {
	case ill == 0:
		return "Handing out ids"
	case len(v.Generators) == 1:
		return "In trouble"
	}
	return fmt.Sprintf("%d of %d generators in trouble", ill, len(v.Generators))
}

type peerState struct{ Name, Address, Since, Rate string }

// state takes a look at everything.
func (s *Server) state(now time.Time) *state {
	h := s.history.snapshot()
	v := &state{
		Name: s.Node.Name, Address: s.Node.Address, Version: s.Node.Version,
		Uptime: inspect.Span(now.Sub(s.started).Milliseconds()),
		Rate:   thousands(h.rate()), Peak: thousands(h.peak()),
		Chart: h.chart("Ids"),
	}
	total, refusals := uint64(0), uint64(0)
	for i := range s.Generators {
		reason, what := s.Generators[i].trouble() // before the mark is looked at: it moves one left behind
		g := s.Generators[i].state(now)
		since := s.troubles.note(i, reason, now)
		if g.Ill = reason != ""; g.Ill {
			v.Ill = fallIll(v.Ill, g.Name, reason, what, since)
		}
		g.Rate = thousands(h.rateOf(i))
		stats := s.Generators[i].Server.Stats()
		total += stats.IDs
		refusals += stats.Refusals
		g.count(stats)
		v.Generators = append(v.Generators, g)
	}
	for i := range v.Ill {
		v.Ill[i].tell(now)
	}
	v.Total = thousands(total)
	t := s.traffic()
	v.Received, v.Sent = size(t.Received), size(t.Sent)
	v.Errors = errorsOf(s.errors.snapshot(), refusals, t)
	v.Latencies = latenciesOf(s.lately.get())
	if s.Recent != nil {
		v.Recent = s.Recent.state()
	}
	takers, all := s.takers.look(now, s.Node.Peers)
	for _, p := range takers {
		v.Peers = append(v.Peers, peerState{plain(p.Name), p.Address.String(), inspect.Span(now.Sub(p.Since).Milliseconds()), thousands(p.rate)})
	}
	v.PeerCount, v.MorePeers = all, all-len(takers)
	return v
}

func (g *Generator) state(now time.Time) generatorState {
	ids := g.Server.IDs
	v := generatorState{Name: g.Name, Format: ids.Format().Name, Who: who(ids), Origin: originOf(g.Server.Origin(), now)}
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

func (v *generatorState) count(stats idserver.Stats) {
	calls := uint64(0)
	for _, c := range stats.Calls {
		calls += c.Calls
	}
	v.IDs, v.Calls = thousands(stats.IDs), thousands(calls)
	v.Waits, v.Refusals = thousands(stats.Waits), thousands(stats.Refusals)
}

// who says as whom a source makes ids, by the fields of its format; of 48 bits as a
// MAC address.
func who(ids formats.Source) []labelled {
	id, fields := ids.Worker(), formats.Who(ids.Format().Fields(formats.Number{}))
	all := make([]labelled, len(fields))
	for i, f := range slices.Backward(fields) {
		value := id & (1<<f.Width - 1)
		id >>= f.Width
		all[i] = labelled{f.Name, strconv.FormatUint(value, 10)}
		if f.Width == 48 {
			all[i].Text = inspect.MAC(value)
		}
	}
	return all
}

// thousands writes a count as 1,234,567.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes bytes as 1.2 MB.
func size(n uint64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	f, i := float64(n), 0
	for ; f >= 999.5; i++ {
		f /= 1000
	}
	if i == 0 || f >= 99.95 {
		return fmt.Sprintf("%.0f %s", f, units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
