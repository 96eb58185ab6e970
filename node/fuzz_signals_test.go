package node

import (
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// cast sends a message that is not answered.
func (s *session) cast() {
	large := make([]byte, s.random.IntN(1+s.random.IntN(20_000)))
	messages := []etf.Term{
		etf.Tuple{etf.Atom("$gen_cast"), etf.Atom("get")},
		etf.Tuple{etf.Atom("$gen_cast"), large},
		large,
		etf.Atom("get"),
		etf.Tuple{etf.Atom("rex"), s.proc()},
		etf.Map{{Key: etf.List{int64(1)}, Value: s.newRef()}},
		etf.Tuple{etf.Atom("$gen_cast"), etf.Tuple{
			etf.Atom("cast"), etf.Atom("erlang"), etf.Atom("node"), etf.List{}, etf.Atom("user")}},
		etf.Tuple{etf.Atom("$gen_call"), s.proc()},
	}
	s.sendTo(s.proc(), s.server(), messages[s.random.IntN(len(messages))])
}

// tellRex sends rex a message that rex answers with another message.
func (s *session) tellRex() {
	from, n, name := s.proc(), int64(s.f.number()), etf.Atom(s.f.node.Name())
	var message, answer etf.Term
	switch s.random.IntN(3) {
	case 0:
		message = etf.Tuple{etf.Atom("call"), etf.Atom("flake_util"), etf.Atom("as_list"), etf.List{n, int64(10)},
			etf.Atom("user")}
		answer = etf.Tuple{etf.Atom("rex"), etf.String(fmt.Sprint(n))}
	case 1:
		message = etf.Atom("features_request")
		answer = etf.Tuple{etf.Atom("features_reply"), name, etf.List{etf.Atom("erpc")}}
	case 2:
		message = etf.Tuple{etf.Atom("sbcast"), etf.Atom("flake_sup"), etf.Atom("message")}
		answer = etf.Tuple{etf.Atom("rex"), name, name}
	}
	s.mu.Lock()
	s.messages[string(from)+string(external(answer))]++
	s.mu.Unlock()
	s.sendTo(from, "rex", etf.Tuple{from, message})
}

// spawn requests a process, usually as erpc does.
func (s *session) spawn() {
	ref, number := s.newRef(), int64(s.f.number())
	q := &spawnOf{from: string(s.proc()), wanted: s.random.IntN(4), check: anything}
	var options etf.List
	for i, option := range []etf.Term{etf.Atom("link"), etf.Atom("monitor")} {
		if q.wanted&(1<<i) != 0 {
			options = append(options, option)
		}
	}
	module, function := etf.Atom("erpc"), etf.Atom("execute_call")
	call := func(m, f etf.Atom, args ...etf.Term) etf.List { return etf.List{ref, m, f, etf.List(args)} }
	args := call("flake_util", "as_list", number, int64(10))
	switch s.random.IntN(9) {
	default:
		q.check = begins(fmt.Sprintf("{%s,return,\"%d\"}", ref, number))
	case 0:
		args = call("flake_server", "id")
		q.check = s.spawnedIDs(askedGet, 1)
	case 1:
		n := s.random.IntN(300)
		args = call("flake_harness", "generate", int64(n))
		q.check = s.spawnedIDs(askedMany, n)
	case 2:
		args = call("no", "such", number)
		q.check = begins("{" + ref.String() + ",error,undef,")
	case 3:
		module, function, args = "erlang", "node", nil
		q.check = begins("normal")
	case 4:
		options = append(options, etf.Atom("odd"))
		q.word = "badopt"
	case 5:
		args = args[:3]
	case 6:
		args = call("no", "such", make([]byte, s.random.IntN(20_000)))
		q.check = begins("{" + ref.String() + ",error,undef,")
	}
	arity := int64(len(args))
	if s.random.IntN(20) == 0 && q.word == "" {
		q.word, arity = "badarg", arity+1
	}
	s.mu.Lock()
	s.spawns[string(ref)] = q
	s.mu.Unlock()
	control := etf.Tuple{int64(29), ref, etf.Pid(q.from), s.proc(), etf.Tuple{module, function, arity}, options}
	if s.random.IntN(8) == 0 {
		control = append(control, etf.Atom("token"))
		control[0] = int64(30)
	}
	s.send(control, args)
}

// spawnedIDs returns a check for {Ref, return, {ok, Id}} or, for many ids, {Ref, return, Ids}.
func (s *session) spawnedIDs(a asked, n int) func(reason []byte) error {
	check := s.wantIDs(new(fuzzCall), a, 0, n)
	return func(reason []byte) error {
		r := etf.NewReader(reason)
		r.Tuple()
		r.Ref()
		if word := string(r.Atom()); word != "return" {
			return fmt.Errorf("spawned: %s", etf.FormatRaw(nil, reason, 200))
		}
		ids := r.Rest()
		switch {
		case n == 0:
			return begins("[]")(ids)
		case a == askedMany:
			ids = append(append(etf.AppendTupleHeader(nil, 2), external(etf.Atom("ok"))...), ids...)
		}
		return check(ids)
	}
}

// spawnLink spawns a process as nodes before OTP 23 do.
func (s *session) spawnLink() {
	from := s.proc()
	tag := s.newRef()
	c := &fuzzCall{server: "net_kernel", before: s.before, to: string(from), check: begins("<")}
	s.mu.Lock()
	s.calls[string(tag)] = c
	s.owners[string(from)]++
	s.mu.Unlock()
	s.sendTo(from, "net_kernel", etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{from, tag}, etf.Tuple{
		etf.Atom("spawn_link"), etf.Atom("erlang"), etf.Atom("node"), etf.List{}, etf.Atom("user")}})
}

// forge sends signals that have no effect, with any sender.
func (s *session) forge() {
	any := func() etf.Pid {
		if pid := s.before[s.server()]; pid != "" && s.random.IntN(3) > 0 {
			return pid
		}
		return []etf.Pid{s.proc(), s.nobody()}[s.random.IntN(2)]
	}
	ours := func() etf.Pid {
		for {
			if pid := any(); pid.Node() != etf.Atom(s.name) {
				return pid
			}
		}
	}
	reason := []etf.Term{etf.Atom("x"), etf.Atom("kill"), etf.Atom("killed"), etf.Atom("restart"),
		etf.Atom("shutdown")}[s.random.IntN(5)]
	var signal etf.Tuple
	switch s.random.IntN(8) {
	case 0:
		signal = etf.Tuple{int64(3), ours(), any(), reason}
	case 1:
		signal = etf.Tuple{int64(13), ours(), any(), etf.Atom("token"), reason}
	case 2:
		signal = etf.Tuple{int64(21), any(), any(), s.newRef(), reason}
	case 3:
		signal = etf.Tuple{int64(21), etf.Atom("flake"), any(), s.newRef(), reason}
	case 4:
		signal = etf.Tuple{int64(7), any(), any()}
	case 5:
		signal = etf.Tuple{int64(8), any(), any(), etf.Atom("not_kill")}
	case 6:
		signal = etf.Tuple{int64(36), int64(s.f.number()), any(), any()}
	case 7:
		signal = etf.Tuple{int64(33), s.proc(), s.newRef()}
		s.send(signal, etf.Atom("message"))
		return
	}
	s.send(signal)
}

// malformed sends a malformed call, which is not answered.
func (s *session) malformed() {
	from := s.proc()
	request := etf.Tuple{etf.Atom("get_many"), int64(3)}
	call := etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{from, s.newRef()}, request}
	frame := appendFrame(nil, regSend(from, "flake"), call)
	switch s.random.IntN(6) {
	case 0:
		frame = frame[:5+s.random.IntN(len(frame)-5)]
	case 1:
		frame = append(frame, 106)
	case 2:
		frame = appendFrame(nil, append(regSend(from, "flake"), int64(1), int64(2)), call)
	case 3:
		frame = appendFrame(nil, etf.Tuple{int64(s.random.IntN(1000) + 40), from}, call)
	case 4:
		frame = appendFrame(nil, etf.Tuple{int64(1), from, etf.Atom("flake")})
	case 5:
		frame = appendFrame(nil, regSend(from, "flake"),
			etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{etf.Atom("by"), int64(1)}, request})
	}
	size := len(frame) - 4
	s.out = append(s.out, byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
	s.out = append(s.out, frame[4:]...)
}
