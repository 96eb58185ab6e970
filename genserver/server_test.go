package genserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// server is a handler that records what it receives, and replies with reply.
type server struct {
	Plain
	calls []string
	reply string
	later int // the size of replies sent later; 0 means that replies are sent immediately
}

func (s *server) HandleCall(c Call) {
	s.calls = append(s.calls, fmt.Sprintf("call %q utf8 %t", c.Request, c.Caps().UTF8Atoms))
	switch {
	case s.later > 0:
		c.Later(func(c Call) {
			if c.Grow(s.later) {
				c.Reply(append(c.Begin(), s.reply...))
			}
		})
	case s.reply != "":
		c.Reply(append(c.Begin(), s.reply...))
	}
}

func (s *server) HandleCast(request []byte, _ Caller) {
	s.calls = append(s.calls, fmt.Sprintf("cast %q", request))
}
func (s *server) HandleInfo(message []byte, _ Caller) {
	s.calls = append(s.calls, fmt.Sprintf("info %q", message))
}

// caller records answers, and the functions passed to Later, which a test calls when the message
// is no longer valid. Its Buffer is not empty.
type caller struct {
	caps  etf.Caps
	sent  []string
	later []func()
	size  int // passed to Grow
}

func (c *caller) Caps() etf.Caps { return c.caps }

func (c *caller) Grow(size int) bool {
	c.size = size
	return true
}

func (c *caller) Buffer() []byte {
	if c.size > 0 {
		return fmt.Appendf(nil, "later %d ", c.size)
	}
	return []byte("before ")
}
func (*caller) Count(int) {}

func (*caller) Context() context.Context { return context.Background() }

func (c *caller) Later(f func(Caller)) { c.later = append(c.later, func() { f(c) }) }

func (c *caller) Send(pid, alias, message []byte) {
	to := fmt.Sprintf("%q", pid)
	if alias != nil {
		to += fmt.Sprintf(" alias %q", alias)
	}
	c.sent = append(c.sent, to+": "+string(message))
}

const (
	pid    = "X\x77\x03a@b\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01"
	oldPid = "g\x64\x00\x03a@b\x00\x00\x00\x09\x00\x00\x00\x00\x01"
	ref    = "Z\x00\x05\x77\x03a@b\x00\x00\x00\x01" + words
	words  = "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x00"
	get    = "w\x03get"
	alias  = "w\x05alias"
	name   = "h\x02w\x02mew\x03a@b"
)

// call returns {'$gen_call', {Pid, Tag}, Request}.
func call(pid, tag, request string) string { return "h\x03w\x09$gen_callh\x02" + pid + tag + request }

// The answer to a call is {Tag, Reply}, with the call's tag. If the tag is [alias | Ref], the
// answer is sent to the alias.
func TestCall(t *testing.T) {
	aliased := "l\x00\x00\x00\x01" + alias + ref
	for name, test := range map[string]struct{ pid, tag, to string }{
		"reference":          {pid, ref, ""},
		"old reference":      {oldPid, "r\x00\x01d\x00\x03a@b\x01\x00\x00\x00\x07", ""},
		"oldest reference":   {oldPid, "ed\x00\x03a@b\x00\x00\x00\x07\x01", ""},
		"alias":              {pid, aliased, ref},
		"alias in ATOM_EXT":  {pid, "l\x00\x00\x00\x01d\x00\x05alias" + ref, ref},
		"proper list":        {pid, "l\x00\x00\x00\x02" + alias + ref + "j", ""},
		"not alias":          {pid, "l\x00\x00\x00\x01w\x05aliaz" + ref, ""},
		"alias and a pid":    {pid, "l\x00\x00\x00\x01" + alias + pid, ""},
		"alias and more":     {pid, "l\x00\x00\x00\x02" + alias + alias + ref, ""},
		"a number":           {pid, "b\x00\x00\x00\x01", ""},
		"an atom":            {pid, "d\x00\x01x", ""},
		"a map with a tuple": {pid, "t\x00\x00\x00\x01h\x00j", ""},
		"the empty list":     {pid, "j", ""},
		"alias in a list":    {pid, "l\x00\x00\x00\x01" + aliased + "w\x04more", ref},
		"from an alias":      {ref, "j", ""},
		"from a name":        {name, "j", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := &server{reply: "w\x02ok"}, &caller{caps: etf.AllCaps}
			if err := (&Server{Handler: s}).Receive([]byte(call(test.pid, test.tag, get)), c); err != nil {
				t.Fatal(err)
			}
			to := fmt.Sprintf("%q", test.pid)
			if test.to != "" {
				to += fmt.Sprintf(" alias %q", test.to)
			}
			check(t, c.sent, to+": before h\x02"+test.tag+"w\x02ok")
			check(t, s.calls, fmt.Sprintf("call %q utf8 true", get))
		})
	}
}

func TestCallToOldPeer(t *testing.T) {
	s, c := &server{reply: "d\x00\x02ok"}, new(caller)
	old := "h\x03d\x00\x09$gen_callh\x02" + oldPid + "a\x01d\x00\x03get"
	if err := (&Server{Handler: s}).Receive([]byte(old), c); err != nil {
		t.Fatal(err)
	}
	check(t, c.sent, fmt.Sprintf("%q: before h\x02a\x01d\x00\x02ok", oldPid))
	check(t, s.calls, fmt.Sprintf("call %q utf8 false", "d\x00\x03get"))
}

// A call need not be answered.
func TestNoReply(t *testing.T) {
	s, c := new(server), new(caller)
	if err := (&Server{Handler: s}).Receive([]byte(call(pid, ref, get)), c); err != nil {
		t.Fatal(err)
	}
	check(t, c.sent)
}

// Server.Call returns the reply.
func TestLocalCall(t *testing.T) {
	s := &server{reply: "h\x02w\x02oka\x07"}
	g := &Server{Pid: etf.NewPid("n@h", 7, 0, 1), Handler: s}
	reply, ok := g.Call(etf.Tuple{etf.Atom("get"), int64(62)})
	if want := "{ok,7}"; !ok || string(etf.Format(nil, reply)) != want {
		t.Errorf("Call returned %v, %t, want %s", reply, ok, want)
	}
	check(t, s.calls, fmt.Sprintf("call %q utf8 true", "h\x02"+get+"a\x3e"))
	s.reply = ""
	if reply, ok := g.Call(etf.Atom("get")); ok {
		t.Errorf("Call without a reply returned %v", reply)
	}
	s.reply = "w\x02o"
	if reply, ok := g.Call(etf.Atom("get")); ok {
		t.Errorf("Call with a truncated reply returned %v", reply)
	}
	calls := len(s.calls)
	if reply, ok := g.Call(struct{}{}); ok || len(s.calls) > calls {
		t.Errorf("Call of a value that is not a term returned %v; calls: %q", reply, s.calls)
	}
}

// A reply may be built when the message is no longer valid.
func TestReplyLater(t *testing.T) {
	const tag = "l\x00\x00\x00\x01" + alias + ref
	s, c := &server{reply: "w\x02ok", later: 9}, new(caller)
	message := []byte(call(pid, tag, get))
	if err := (&Server{Handler: s}).Receive(message, c); err != nil {
		t.Fatal(err)
	}
	clear(message)
	check(t, c.sent)
	c.later[0]()
	check(t, c.sent, fmt.Sprintf("%q alias %q: later %d h\x02%sw\x02ok", pid, ref, len("h\x02"+tag)+9, tag))
}

// Server.Call waits for a reply sent later, unless it is too large.
func TestLocalCallLater(t *testing.T) {
	for later, want := range map[int]bool{1: true, MaxLocal - len("h\x02j"): true, MaxLocal - len("h\x02j") + 1: false} {
		s := &server{reply: "w\x02ok", later: later}
		reply, ok := (&Server{Pid: etf.NewPid("n@h", 7, 0, 1), Handler: s}).Call(etf.Atom("get"))
		if ok != want || ok != (reply == etf.Atom("ok")) {
			t.Errorf("%d bytes: %v, %t, want %t", later, reply, ok, want)
		}
	}
}

// HandleCast receives casts, and HandleInfo receives messages that are neither calls nor casts.
func TestCastAndInfo(t *testing.T) {
	for message, want := range map[string]string{
		"h\x02w\x09$gen_cast" + get:             "cast",
		"h\x02d\x00\x09$gen_cast" + get:         "cast",
		"i\x00\x00\x00\x02w\x09$gen_cast" + get: "cast",
		get:                                     "info",
		"j":                                     "info",
		"h\x00":                                 "info",
		"h\x01a\x01":                            "info",
		"h\x03w\x04EXIT" + pid + "w\x03why":     "info",
		"h\x02w\x09$gen_call" + get:             "info",
		"h\x02w\x06system" + get:                "info",
		"h\x03w\x09$gen_cast" + get + get:       "info",
		"h\x04w\x09$gen_callh\x02" + pid + ref + get + "j": "info",
		"h\x02h\x00" + get: "info",
	} {
		s, c := &server{reply: "j"}, new(caller)
		if err := (&Server{Handler: s}).Receive([]byte(message), c); err != nil {
			t.Errorf("%q: %v", message, err)
		}
		shown := message
		if want == "cast" {
			shown = get
		}
		check(t, s.calls, fmt.Sprintf("%s %q", want, shown))
		check(t, c.sent)
	}
}

// A malformed call or cast does not reach the Handler.
func TestMalformed(t *testing.T) {
	whole := call(pid, ref, get)
	tests := map[string]string{
		"from not a tuple":     "h\x03w\x09$gen_call" + pid + get,
		"from without a pid":   call("a\x01", ref, get),
		"from of one":          "h\x03w\x09$gen_callh\x01" + pid + get,
		"from of three":        "h\x03w\x09$gen_callh\x03" + pid + ref + "j" + get,
		"cut request":          call(pid, ref, "w\x03ge"),
		"unknown tag":          call(pid, ref, "\xc8"),
		"trailing bytes":       whole + "j",
		"system without a pid": "h\x03w\x06systemh\x02a\x01" + ref + get,
		"cast cut":             "h\x02w\x09$gen_castw\x03ge",
		"cast and trailing":    "h\x02w\x09$gen_cast" + get + "j",
		"message cut":          "h\x02w\x05hello",
		"message trailing":     get + "j",
		"message of bytes":     "\xc8\x01\x02",
	}
	for n := strings.Index(whole, "$gen_call") + 9; n < len(whole); n++ {
		tests[fmt.Sprintf("cut at %d", n)] = whole[:n]
	}
	for name, message := range tests {
		s, c := &server{reply: "j"}, new(caller)
		if err := (&Server{Handler: s}).Receive([]byte(message), c); err == nil {
			t.Errorf("%s: no error", name)
		}
		check(t, s.calls)
		check(t, c.sent)
	}
}

func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func FuzzReceive(f *testing.F) {
	for _, m := range []string{
		call(pid, ref, get), call(oldPid, "l\x00\x00\x00\x01"+alias+ref, get), get, "h\x02w\x09$gen_cast" + get,
	} {
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		s, c := &server{reply: "j"}, new(caller)
		err := (&Server{Handler: s}).Receive(message, c)
		if (err == nil) != (len(s.calls) == 1) {
			t.Errorf("%q: %v, %q", message, err, s.calls)
		}
		calls := strings.HasPrefix(strings.Join(s.calls, ""), "call")
		if calls != (len(c.sent) == 1) {
			t.Errorf("%q: %q, sent %q", message, s.calls, c.sent)
		}
	})
}
