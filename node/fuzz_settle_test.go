package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// settle waits until everything expected has been received, and fails if anything else has been
// received too.
func (s *session) settle() {
	s.flush()
	s.await(s.unanswered)
	s.demonitorAnswered()
	s.mark()
	s.flush()
	s.await(func(now servers) string { return s.unanswered(now) + s.unended(now) })
	s.mu.Lock()
	now := s.f.servers()
	what := ""
	for _, suspect := range s.suspects {
		if same(suspect.server, suspect.before, now) {
			what = suspect.what
		}
	}
	s.suspects = nil
	s.forget(now)
	s.mu.Unlock()
	if what != "" {
		s.fail("%s", what)
	}
}

// mark sets a monitor that ends when everything before it has been handled.
func (s *session) mark() {
	w := s.monitor(s.procs[0], etf.Atom("nobody"), s.newRef())
	s.mu.Lock()
	s.last = w
	s.mu.Unlock()
}

func (s *session) await(missing func(now servers) string) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		what := missing(s.f.servers())
		s.mu.Unlock()
		if what == "" || s.f.fault.Load() {
			return
		}
		if time.Now().After(end) {
			s.fail("missing: %s", what)
			return
		}
	}
}

// same reports whether a server has not been replaced.
func same(server etf.Atom, before, now servers) bool {
	return before[server] != "" && before[server] == now[server]
}

// unanswered describes the requests that still need an answer. A request does not need one if its
// server has ended since the request was sent.
func (s *session) unanswered(now servers) string {
	s.lose(now)
	var what strings.Builder
	for tag, c := range s.calls {
		if !c.lost {
			fmt.Fprintf(&what, "the answer to call %s; ", etf.FormatRaw(nil, []byte(tag), 100))
		}
	}
	for ref, q := range s.spawns {
		if !q.over() {
			fmt.Fprintf(&what, "the end of the process that %s spawned: %+v; ", etf.FormatRaw(nil, []byte(ref), 100), q)
		}
	}
	if len(s.acks) > 0 {
		fmt.Fprintf(&what, "acknowledgments for %d removed links; ", len(s.acks))
	}
	if len(s.messages) > 0 {
		fmt.Fprintf(&what, "%d messages from rex; ", len(s.messages))
	}
	what.WriteString(s.f.unanswered(now, func(p *passed) bool { return p.via == s }))
	return what.String()
}

// lose drops the requests whose servers have ended since the requests were sent.
func (s *session) lose(now servers) {
	for _, c := range s.calls {
		if !c.lost && !same(c.server, c.before, now) {
			c.lost = true
			if q := c.queue; q != nil {
				q.last = 0
				q.waiting = slices.DeleteFunc(q.waiting, func(other *fuzzCall) bool { return other == c })
			}
		}
	}
	if !same("rex", s.before, now) {
		for key, n := range s.messages {
			s.late[key] += n
		}
		clear(s.messages)
	}
}

// unended describes the ends of monitors and links that are missing or unexpected.
func (s *session) unended(now servers) string {
	if !s.last.ended {
		return "the last monitor's end"
	}
	var what strings.Builder
	for ref, w := range s.monitors {
		if !w.sure && same(w.server, w.before, now) {
			w.pid, w.sure = now[w.server], true
		}
		alive := w.sure && now.alive(w.pid)
		if alive && w.ended || w.sure && !alive && !w.ended && !w.taken {
			fmt.Fprintf(&what, "monitor %s: ended %t, its process alive %t; ", etf.FormatRaw(nil, []byte(ref), 100),
				w.ended, alive)
		}
	}
	for key, l := range s.links {
		if alive := now.alive(l.pid); alive && l.exits > 0 || !alive && !l.mayEnd(l.pid == "") {
			fmt.Fprintf(&what, "link of %s: %s, ended %d times, its process alive %t; ",
				etf.FormatRaw(nil, []byte(key.theirs), 100), l.done, l.exits, alive)
		}
	}
	return what.String()
}

// forget drops monitors and links that have ended.
func (s *session) forget(now servers) {
	for ref, w := range s.monitors {
		if w.ended || w.taken {
			delete(s.monitors, ref)
		}
	}
	for key, l := range s.links {
		if now.alive(l.pid) {
			l.done = l.done[strings.LastIndexAny(l.done, "UE")+1:]
			l.done = l.done[:min(1, len(l.done))]
		}
		if l.done == "" || l.pid == "" {
			delete(s.links, key)
		}
	}
	for ref, q := range s.spawns {
		if q.over() {
			delete(s.spawns, ref)
			delete(s.spawned, pair{q.pid, q.from})
		}
	}
}
