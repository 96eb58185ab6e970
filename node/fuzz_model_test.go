package node

import (
	"fmt"
	"slices"

	"github.com/flake-go/flake/node/etf"
)

// model holds the requests of a session that have not been answered. Its terms are external
// terms.
type model struct {
	calls    map[string]*fuzzCall // by tag
	queues   map[queueKey]*queue
	monitors map[string]*watch // by reference
	links    map[pair]*linkOf
	spawns   map[string]*spawnOf // by reference
	spawned  map[pair]*spawnOf   // processes linked to their owner, by pid and owner
	owners   map[string]int      // expected links by net_kernel, by owner
	acks     map[string]pair     // expected acknowledgments of removed links, by number
	messages map[string]int      // expected messages of rex, by receiver and message
	late     map[string]int      // messages that may be missing
	last     *watch              // once it has ended, all earlier frames have been handled
	answered []string            // references of the monitors of answered calls
	suspects []suspect
}

func newModel() model {
	return model{
		calls: make(map[string]*fuzzCall), queues: make(map[queueKey]*queue), monitors: make(map[string]*watch),
		links: make(map[pair]*linkOf), spawns: make(map[string]*spawnOf), spawned: make(map[pair]*spawnOf),
		owners: make(map[string]int), acks: make(map[string]pair), messages: make(map[string]int),
		late: make(map[string]int),
	}
}

// pair is a process of the node and a process of the peer.
type pair struct{ ours, theirs string }

// suspect is a fault unless server has been replaced since before was recorded.
type suspect struct {
	server etf.Atom
	before servers
	what   string
}

func (s *session) suspect(server etf.Atom, before servers, format string, args ...any) {
	s.suspects = append(s.suspects, suspect{server, before, fmt.Sprintf(format, args...)})
}

// fuzzCall is a call that has not been answered.
type fuzzCall struct {
	server  etf.Atom
	before  servers
	to      string // the pid or alias to which the answer is sent
	monitor string // the reference, or ""
	queue   *queue // nil if answers may arrive in any order
	check   func(reply []byte) error
	lost    bool // whether the answer may be missing
}

type queueKey struct {
	from   etf.Pid
	server etf.Atom
}

// queue holds the calls of a process to a server in order.
type queue struct {
	waiting []*fuzzCall
	last    uint64 // the highest id received
}

func (s *session) queueOf(from etf.Pid, server etf.Atom) *queue {
	q := s.queues[queueKey{from, server}]
	if q == nil {
		q = new(queue)
		s.queues[queueKey{from, server}] = q
	}
	return q
}

// message handles a message to a process of the peer.
func (s *session) message(to string, raw []byte) error {
	for _, messages := range []map[string]int{s.messages, s.late} {
		if key := to + string(raw); messages[key] > 0 {
			if messages[key]--; messages[key] == 0 {
				delete(messages, key)
			}
			return nil
		}
	}
	r := etf.NewReader(raw)
	arity := r.Tuple()
	tag, reply := string(r.Raw()), r.Raw()
	if err := r.Finish(); err != nil || arity != 2 {
		return fmt.Errorf("a message without a request: %v", err)
	}
	c := s.calls[tag]
	if c == nil {
		return s.f.answered(s.name, tag, to, reply)
	}
	delete(s.calls, tag)
	if c.to != to {
		return fmt.Errorf("an answer to a process other than the caller")
	}
	if q := c.queue; q != nil {
		at := slices.Index(q.waiting, c)
		if at > 0 {
			s.suspect(c.server, q.waiting[0].before, "an answer before the answer to an earlier call of the process")
		}
		if at >= 0 {
			q.waiting = slices.Delete(q.waiting, at, at+1)
		}
	}
	if c.monitor != "" {
		s.answered = append(s.answered, c.monitor)
	}
	return c.check(reply)
}

// watch is a monitor.
type watch struct {
	item, from, ref string
	server          etf.Atom // set if the process is monitored by name
	before          servers
	pid             etf.Pid // the watched process if sure; "" if it never existed
	sure            bool    // whether the watched process is known
	taken           bool    // whether the monitor was removed
	ended           bool
}

func (s *session) down(item, from, ref string, reason []byte) error {
	if q := s.spawns[ref]; q != nil {
		return q.down(item, from, reason)
	}
	w := s.monitors[ref]
	switch {
	case w == nil:
		return fmt.Errorf("an unknown monitor ended")
	case w.ended:
		return fmt.Errorf("a monitor ended twice")
	case w.item != item || w.from != from:
		return fmt.Errorf("a monitor of another process ended")
	}
	w.ended = true
	return nil
}

// linkOf is a link and the operations on it: L set it, U removed it, and at E the peer's
// process ended.
type linkOf struct {
	pid   etf.Pid
	done  string
	exits int
}

// mayEnd reports whether the number of exits received is possible, given that our process has
// ended. It may have ended before, between or after the operations; if it never existed, it counts
// as ended before them.
func (l *linkOf) mayEnd(never bool) bool {
	for end := range len(l.done) + 1 {
		linked, exits := false, 0
		for i, what := range l.done {
			if i == end && linked {
				linked = false
				exits++
			}
			switch {
			case what != 'L':
				linked = false
			case i >= end:
				exits++
			default:
				linked = true
			}
		}
		if end == len(l.done) && linked {
			exits++
		}
		if exits == l.exits {
			return true
		}
		if never {
			break
		}
	}
	return false
}

func (s *session) exit(from, to string, reason []byte) error {
	key := pair{from, to}
	if q := s.spawned[key]; q != nil {
		return q.exit(reason)
	}
	l := s.links[key]
	if l == nil {
		return fmt.Errorf("an unknown link ended")
	}
	l.exits++
	return nil
}

// unlinked records that a link was removed.
func (s *session) unlinked(id, from, to string) error {
	if key, ok := s.acks[id]; !ok || key != (pair{from, to}) {
		return fmt.Errorf("an acknowledgment of a link removal that was not requested")
	}
	delete(s.acks, id)
	return nil
}

// spawnOf is a spawn request and its process.
type spawnOf struct {
	from             string
	wanted           int    // expected flags
	word             string // the error instead of the process, or ""
	check            func(reason []byte) error
	pid              string
	replied, refused bool
	downs, exits     int
}

func (s *session) spawnReply(ref, to, flags string, result []byte) error {
	q := s.spawns[ref]
	if q == nil || q.replied || q.from != to {
		return fmt.Errorf("an answer to an unknown spawn request")
	}
	q.replied = true
	r := etf.NewReader(result)
	if !r.Peek().IsPid() {
		q.refused = true
		if word := string(r.Atom()); word == "system_limit" {
			s.f.refused.Add(1)
		} else if word != q.word {
			return fmt.Errorf("spawn refused with %s", etf.FormatRaw(nil, result, 100))
		}
		return nil
	}
	q.pid = string(result)
	if q.word != "" || flags != string(etf.AppendInt(nil, int64(q.wanted))) {
		return fmt.Errorf("spawned with other flags, or instead of a refusal")
	}
	if q.wanted&1 != 0 {
		s.spawned[pair{q.pid, to}] = q
	}
	return nil
}

// linkedTo records the link of a process that net_kernel has spawned.
func (s *session) linkedTo(from, to string) error {
	if s.owners[to] == 0 {
		return fmt.Errorf("a link without a request")
	}
	s.owners[to]--
	q := &spawnOf{from: to, wanted: 1, check: anything, pid: from, replied: true}
	s.spawned[pair{from, to}] = q
	s.spawns[from] = q
	return nil
}

func (q *spawnOf) down(item, from string, reason []byte) error {
	q.downs++
	if q.wanted&2 == 0 || !q.replied || q.refused || item != q.pid || from != q.from || q.downs > 1 {
		return fmt.Errorf("the end of a spawned process is reported without a request or at the wrong time")
	}
	return q.check(reason)
}

func (q *spawnOf) exit(reason []byte) error {
	q.exits++
	if q.exits > 1 {
		return fmt.Errorf("the end of a spawned process is reported twice")
	}
	if q.wanted&2 != 0 {
		return nil // already checked with the monitor
	}
	return q.check(reason)
}

func (q *spawnOf) over() bool {
	return q.replied && (q.refused || q.downs == q.wanted>>1 && q.exits == q.wanted&1)
}

func anything([]byte) error { return nil }
