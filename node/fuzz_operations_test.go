package node

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/flake-go/flake/node/etf"
)

// operation is something that a peer does, with a weight for how often.
type operation struct {
	name   string
	weight int
	do     func(s *session)
}

var operations = []operation{
	{"calls of flake", 30, (*session).callFlake},
	{"calls of other servers", 8, (*session).callOthers},
	{"calls forwarded", 4, (*session).passOn},
	{"casts and messages", 6, (*session).cast},
	{"messages to rex", 4, (*session).tellRex},
	{"monitors", 8, (*session).setMonitor},
	{"monitors removed", 5, (*session).takeMonitor},
	{"links", 8, (*session).setLink},
	{"links removed, or their process ended", 8, (*session).endLink},
	{"processes that end", 1, (*session).endProcess},
	{"spawn requests", 6, (*session).spawn},
	{"spawns by net_kernel", 2, (*session).spawnLink},
	{"signals without effect", 6, (*session).forge},
	{"messages to be dropped", 4, (*session).malformed},
	{"ticks", 1, func(s *session) { s.out = append(s.out, 0, 0, 0, 0) }},
	{"pauses in reading", 1, func(s *session) { s.stall.Store(true) }},
}

var weights = func() (sum int) {
	for _, o := range operations {
		sum += o.weight
	}
	return sum
}()

// operate performs a random operation; only a killer kills servers.
func (s *session) operate(killer bool) {
	s.f.operations.Add(1)
	if killer && s.random.IntN(50) == 0 {
		s.f.count("kills")
		s.kill()
		return
	}
	at := s.random.IntN(weights)
	for _, o := range operations {
		if at -= o.weight; at < 0 {
			s.f.count(o.name)
			o.do(s)
			return
		}
	}
}

func (f *fuzzer) count(operation string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done[operation]++
}

func (s *session) proc() etf.Pid { return s.procs[s.random.IntN(len(s.procs))] }

// newPid returns a pid of the peer, sometimes in the old form.
func (s *session) newPid() etf.Pid {
	id, serial := s.f.number(), s.random.Uint32N(8)
	if s.random.IntN(8) > 0 {
		return etf.NewPid(etf.Atom(s.name), id, serial, 77)
	}
	b := append([]byte{byte(etf.PidExt), byte(etf.AtomExt), 0, byte(len(s.name))}, s.name...)
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint32(b, serial)
	return etf.Pid(append(b, 1))
}

func (s *session) newRef() etf.Ref {
	words := []uint32{s.f.number(), 2, 3, 4, 5}
	return etf.NewRef(etf.Atom(s.name), 77, words[:3+2*s.random.IntN(2)]...)
}

// server returns the name of a random server.
func (s *session) server() etf.Atom {
	return []etf.Atom{"flake", "flake", "flake_sup", "persistent_timer", "kernel_sup", "net_kernel",
		"rex"}[s.random.IntN(7)]
}

// nobody returns a pid of the node that no process has.
func (s *session) nobody() etf.Pid {
	n := s.f.node
	switch id := 1<<30 + s.f.number(); s.random.IntN(3) {
	case 0:
		return etf.NewPid(etf.Atom(n.Name()), id, 0, n.creation+4)
	case 1:
		return etf.NewPid("other@127.0.0.1", id, 0, n.creation)
	default:
		return etf.NewPid(etf.Atom(n.Name()), id, 0, n.creation)
	}
}

// monitor sets a monitor on a name or a pid.
func (s *session) monitor(from etf.Pid, item etf.Term, ref etf.Ref) *watch {
	w := &watch{item: string(external(item)), from: string(from), ref: string(ref), before: s.before}
	switch item := item.(type) {
	case etf.Pid:
		w.sure = true
		if s.isServer(item) {
			w.pid = item
		}
	case etf.Atom:
		w.server = item
		w.sure = item == "nobody"
	}
	s.mu.Lock()
	s.monitors[w.ref] = w
	s.mu.Unlock()
	s.send(monitor(from, item, ref))
	return w
}

func (s *session) isServer(pid etf.Pid) bool {
	return s.before.alive(pid)
}

func (s *session) setMonitor() {
	const most = 300 // within the allowance of a connection
	s.mu.Lock()
	n := len(s.monitors)
	s.mu.Unlock()
	if n > most {
		s.takeMonitor()
		return
	}
	item := []etf.Term{s.server(), s.before[s.server()], s.nobody(), etf.Atom("nobody")}[s.random.IntN(4)]
	if item == etf.Pid("") {
		item = etf.Atom("nobody")
	}
	s.monitor(s.proc(), item, s.newRef())
}

// takeMonitor removes a monitor, which may not exist.
func (s *session) takeMonitor() {
	s.mu.Lock()
	var w *watch
	for _, w = range s.monitors { // in random order
		if !w.taken && w != s.last {
			break
		}
	}
	s.mu.Unlock()
	if w == nil || w.taken || w == s.last {
		s.send(etf.Tuple{int64(20), s.proc(), etf.Atom("flake"), s.newRef()})
		return
	}
	s.demonitor(w)
}

func (s *session) demonitor(w *watch) {
	s.mu.Lock()
	w.taken = true
	s.mu.Unlock()
	s.send(etf.Tuple{int64(20), etf.Pid(w.from), etf.Encoded(w.item), etf.Ref(w.ref)})
}

// demonitorAnswered removes the monitors of answered calls.
func (s *session) demonitorAnswered() {
	s.mu.Lock()
	answered := s.answered
	s.answered = nil
	var ws []*watch
	for _, ref := range answered {
		if w := s.monitors[ref]; w != nil && !w.taken && !w.ended {
			ws = append(ws, w)
		}
	}
	s.mu.Unlock()
	for _, w := range ws {
		s.demonitor(w)
	}
}

// link records an operation on a link: see linkOf.
func (s *session) link(from, to etf.Pid, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := pair{string(to), string(from)}
	l := s.links[key]
	if l == nil {
		l = new(linkOf)
		if s.isServer(to) {
			l.pid = to
		}
		s.links[key] = l
	}
	l.done += what
}

func (s *session) setLink() {
	from, to := s.proc(), s.before[s.server()]
	if to == "" || s.random.IntN(4) == 0 {
		to = s.nobody()
	}
	for range 1 + s.random.IntN(2) { // the second time has no effect
		s.link(from, to, "L")
		s.send(etf.Tuple{int64(1), from, to})
	}
}

// endLink removes a link, which may not exist, in a random way.
func (s *session) endLink() {
	s.mu.Lock()
	key := pair{string(s.before["flake"]), string(s.proc())}
	for any := range s.links {
		key = any
		break
	}
	s.mu.Unlock()
	if key.ours == "" {
		return
	}
	s.unlink(etf.Pid(key.theirs), etf.Pid(key.ours), s.random.IntN(3))
}

func (s *session) unlink(from, to etf.Pid, way int) {
	switch way {
	case 0:
		id := int64(s.f.number())
		s.link(from, to, "U")
		s.mu.Lock()
		s.acks[string(etf.AppendInt(nil, id))] = pair{string(to), string(from)}
		s.mu.Unlock()
		s.send(etf.Tuple{int64(35), id, from, to})
	case 1:
		s.link(from, to, "U")
		s.send(etf.Tuple{int64(4), from, to})
	case 2:
		s.link(from, to, "E")
		s.send(etf.Tuple{int64(3), from, to, etf.Atom("crash")})
	}
}

// endProcess ends a process of the peer, with its links and monitors.
func (s *session) endProcess() {
	i := s.random.IntN(len(s.procs))
	from := s.procs[i]
	s.mu.Lock()
	var ws []*watch
	var linked []pair
	for _, w := range s.monitors {
		if w.from == string(from) && !w.taken {
			ws = append(ws, w)
		}
	}
	for key := range s.links {
		if key.theirs == string(from) {
			linked = append(linked, key)
		}
	}
	s.mu.Unlock()
	for _, key := range linked {
		s.unlink(from, etf.Pid(key.ours), 2)
	}
	for _, w := range ws {
		s.demonitor(w)
	}
	s.procs = slices.Replace(s.procs, i, i+1, s.newPid())
}

// kill ends a server with an exit signal or a system message.
func (s *session) kill() {
	name := []etf.Atom{"flake", "persistent_timer", "net_kernel", "rex"}[s.random.IntN(4)]
	if s.random.IntN(3) == 0 {
		reason := []etf.Term{etf.Atom("shutdown"), etf.Tuple{etf.Atom("odd"), int64(s.f.number())}}[s.random.IntN(2)]
		s.expect(s.ask(name, "system", etf.Tuple{etf.Atom("terminate"), reason}), begins("ok"))
	} else if pid := pidOf(s.f.node, string(name)); pid != "" {
		s.send(etf.Tuple{int64(8), s.proc(), pid, etf.Atom("kill")})
	}
}

// passed is a call that a peer forwarded for another node. The answer is sent to that node,
// or to the peer if that node is not connected.
type passed struct {
	*fuzzCall
	via, from *session // from is nil if the caller's node does not exist
	caller    string
}

func (s *session) passOn() {
	f := s.f
	caller := fmt.Sprintf("nobody%d@127.0.0.1", s.random.IntN(20))
	f.mu.Lock()
	var from *session
	if s.random.IntN(4) > 0 {
		for caller, from = range f.sessions { // in random order
			break
		}
	}
	f.mu.Unlock()
	if from == s {
		return
	}
	pid := etf.NewPid(etf.Atom(caller), f.number(), 0, 77)
	tag := etf.NewRef(etf.Atom(caller), 77, f.number(), 2, 3)
	c := &fuzzCall{server: "flake", before: s.before, to: string(pid)}
	n := 1 + s.random.IntN(200)
	c.check = s.wantIDs(c, askedMany, 0, n)
	f.mu.Lock()
	f.passed[string(tag)] = &passed{c, s, from, caller}
	f.mu.Unlock()
	s.sendTo(s.proc(), "flake", etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{pid, tag},
		etf.Tuple{etf.Atom("get_many"), int64(n)}})
}

// answered handles an answer, received by a peer, to a forwarded call.
func (f *fuzzer) answered(peer, tag, to string, reply []byte) error {
	f.mu.Lock()
	p := f.passed[tag]
	delete(f.passed, tag)
	f.mu.Unlock()
	if p == nil || p.to != to || peer != p.caller && peer != p.via.name {
		return fmt.Errorf("an answer without a call")
	}
	return p.check(reply)
}

// unanswered describes the forwarded calls that still need an answer.
func (f *fuzzer) unanswered(now servers, which func(p *passed) bool) (what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for tag, p := range f.passed {
		if !which(p) || p.lost {
			continue
		}
		p.lost = !same(p.server, p.before, now) || p.via.gone || p.from != nil && p.from.gone
		if !p.lost {
			what += fmt.Sprintf("the answer to call %s of %s; ", etf.FormatRaw(nil, []byte(tag), 100), p.caller)
		}
	}
	return what
}
