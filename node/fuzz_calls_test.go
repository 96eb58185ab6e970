package node

import (
	"fmt"
	"strings"

	"github.com/flake-go/flake/node/etf"
)

// ask calls a server in a random way.
func (s *session) ask(server, word etf.Atom, request etf.Term) *fuzzCall {
	from := s.proc()
	tag, alias := s.newTag()
	c := &fuzzCall{server: server, before: s.before, to: string(from), check: anything}
	if alias != "" {
		c.to = string(alias)
	}
	s.mu.Lock()
	s.calls[string(external(tag))] = c
	if server != "rex" {
		c.queue = s.queueOf(from, server)
		c.queue.waiting = append(c.queue.waiting, c)
	}
	s.mu.Unlock()
	if s.random.IntN(2) == 0 {
		if alias == "" {
			alias = s.newRef()
		}
		s.monitor(from, server, alias)
		s.mu.Lock()
		c.monitor = string(alias)
		s.mu.Unlock()
	}
	s.sendTo(from, server, etf.Tuple{word, etf.Tuple{from, tag}, request})
	return c
}

// newTag returns a tag, and its alias or "".
func (s *session) newTag() (tag etf.Term, alias etf.Ref) {
	switch ref := s.newRef(); s.random.IntN(5) {
	case 0:
		return etf.ImproperList{Elements: []etf.Term{etf.Atom("alias")}, Tail: ref}, ref
	case 1:
		return int64(s.f.number()), ""
	case 2:
		return []byte(fmt.Sprint(s.f.number())), ""
	default:
		return ref, ""
	}
}

// sendTo sends a message to a server, by its name or pid, traced or not.
func (s *session) sendTo(from etf.Pid, server etf.Atom, message etf.Term) {
	none, token := etf.Atom(""), etf.Term(etf.Tuple{int64(1), int64(17), int64(s.random.IntN(9)), from, int64(0)})
	if s.random.IntN(4) == 0 {
		token = etf.Atom("none")
	}
	to := s.before[server]
	kind := s.random.IntN(10)
	if to == "" {
		kind %= 2
	}
	switch kind {
	default:
		s.send(regSend(from, server), message)
	case 1:
		s.send(etf.Tuple{int64(16), from, none, server, token}, message)
	case 2:
		s.send(etf.Tuple{int64(2), none, to}, message)
	case 3:
		s.send(etf.Tuple{int64(22), from, to}, message)
	case 4:
		s.send(etf.Tuple{int64(12), none, to, token}, message)
	case 5:
		s.send(etf.Tuple{int64(23), from, to, token}, message)
	}
}

// expect records how to check the answer to a call.
func (s *session) expect(c *fuzzCall, check func(reply []byte) error) {
	s.mu.Lock()
	c.check = check
	s.mu.Unlock()
}

// begins returns a check that a reply, as Erlang prints it, begins with text.
func begins(text string) func(reply []byte) error {
	return func(reply []byte) error {
		if got := string(etf.FormatRaw(nil, reply, 1000)); !strings.HasPrefix(got, text) {
			return fmt.Errorf("answered %s, want %s", got, text)
		}
		return nil
	}
}

// wantIDs returns a check that a reply has n ids as requested.
func (s *session) wantIDs(c *fuzzCall, a asked, base, n int) func(reply []byte) error {
	return func(reply []byte) error {
		const large = 256
		if n > large && begins("{error,system_limit}")(reply) == nil {
			s.f.refused.Add(1)
			return nil
		}
		runs, err := readIDs(a, base, reply)
		if err != nil {
			return err
		}
		if got := count(runs); got != n {
			return fmt.Errorf("%d ids, want %d", got, n)
		}
		for _, r := range runs {
			if q := c.queue; q != nil && !c.lost {
				if r.from <= q.last {
					s.suspect(c.server, c.before, "an id that is not above earlier ones")
				}
				q.last = r.to
			}
		}
		s.f.ids.add(runs...)
		return nil
	}
}

// flakeRequest returns a random request to the server flake.
func (s *session) flakeRequest() (request etf.Term, check func(c *fuzzCall) func([]byte) error) {
	n := s.amount()
	base := 2 + s.random.IntN(61)
	word := func(w etf.Atom, args ...etf.Term) etf.Tuple { return append(etf.Tuple{w}, args...) }
	ids := func(a asked, base, n int) func(c *fuzzCall) func([]byte) error {
		return func(c *fuzzCall) func([]byte) error { return s.wantIDs(c, a, base, n) }
	}
	fixed := func(text string) func(c *fuzzCall) func([]byte) error {
		return func(*fuzzCall) func([]byte) error { return begins(text) }
	}
	switch s.random.IntN(14) {
	default:
		return etf.Atom("get"), ids(askedGet, 0, 1)
	case 1:
		return word("get", int64(base)), ids(askedGet, base, 1)
	case 2:
		return word("get", etf.Atom("canonical")), ids(askedGet, 62, 1)
	case 3:
		return word("get_many", int64(n)), ids(askedMany, 0, n)
	case 4:
		return word("get_many", int64(n), int64(base)), ids(askedMany, base, n)
	case 5:
		return word("get_binary", int64(n)), ids(askedBinary, 0, n)
	case 6:
		return word("lease", int64(n)), ids(askedLease, 0, n)
	case 7:
		return word([]etf.Atom{"get_many", "get_binary", "lease", "get"}[n%4], int64(-n)), fixed("{error,badarg}")
	case 8:
		return etf.Atom("info"), fixed("[{format,flake},")
	case 9:
		return word("notional", int64(n)), fixed("{ok,<<")
	case 10:
		return word("decompose", make([]byte, 16)), fixed("{ok,[{time,0},{worker,0},")
	case 11:
		return word("unknown", int64(n)), fixed("ok")
	}
}

// amount returns a random number of ids, usually small.
func (s *session) amount() int {
	switch r := s.random.IntN(400); {
	case r == 0:
		return 1 + s.random.IntN(1<<16)
	case r < 40:
		return 257 + s.random.IntN(2000)
	case r < 150:
		return 1 + s.random.IntN(256)
	}
	return 1 + s.random.IntN(8)
}

func (s *session) callFlake() {
	request, check := s.flakeRequest()
	c := s.ask("flake", "$gen_call", request)
	s.expect(c, check(c))
}

// callOthers calls servers other than flake.
func (s *session) callOthers() {
	apply := func(m, f etf.Atom, args ...etf.Term) etf.Tuple {
		return etf.Tuple{etf.Atom("call"), m, f, etf.List(args), etf.Atom("user")}
	}
	number := int64(s.f.number())
	calls := []struct {
		server, word etf.Atom
		request      etf.Term
		reply        string
	}{
		{"flake", "system", etf.Atom("get_state"), ""},
		{"flake", "system", etf.Atom("get_status"), "{status,"},
		{"net_kernel", "$gen_call", etf.Tuple{etf.Atom("is_auth"), etf.Atom(s.name)}, "yes"},
		{"net_kernel", "$gen_call", etf.Atom("nodename"), "'flake@127.0.0.1'"},
		{"net_kernel", "$gen_call", etf.Atom("longnames"), "true"},
		{"net_kernel", "$gen_call", etf.Tuple{
			etf.Atom("spawn"), etf.Atom("erlang"), etf.Atom("node"), etf.List{}, etf.Atom("user")}, "<"},
		{"rex", "$gen_call", apply("flake_util", "as_list", number, int64(10)), fmt.Sprintf("%q", fmt.Sprint(number))},
		{"rex", "$gen_call", apply("erlang", "whereis", etf.Atom("nobody")), "undefined"},
		{"rex", "$gen_call", apply("no", "such"), "{badrpc,{'EXIT',{undef,"},
		{"rex", "$gen_call", apply("no", "such", make([]byte, s.random.IntN(20_000))), "{badrpc,{'EXIT',{undef,"},
		{"rex", "$gen_call", apply("net_adm", "ping", etf.Atom("nobody@127.0.0.1")), "pang"},
		{"rex", "$gen_call", etf.Atom("stop"), "stopped"},
		{"persistent_timer", "$gen_call", etf.Atom("get_last_timestamp"), "{ok,"},
		{"flake_sup", "$gen_call", etf.Atom("which_children"), "[{persistent_timer,"},
		{"flake_sup", "$gen_call", etf.Atom("count_children"), "[{specs,2},"},
		{"flake_sup", "$gen_call", etf.Tuple{etf.Atom("delete_child"), etf.Atom("flake")}, "{error,not_supported}"},
		{"kernel_sup", "$gen_call", etf.Atom("count_children"), "[{specs,3},"},
		{"global_name_server", "$gen_call", etf.Tuple{etf.Atom("set_lock"), etf.Atom("x")}, "false"},
	}
	call := calls[s.random.IntN(len(calls))]
	s.expect(s.ask(call.server, call.word, call.request), begins(call.reply))
}
