package genserver

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// Who asks to terminate a server is answered first. One that does not end says so.
func TestTerminate(t *testing.T) {
	ref := etf.NewRef("a@b", 1, 1, 2, 3)
	message, err := etf.Append(nil, etf.Tuple{
		etf.Atom("system"), etf.Tuple{etf.NewPid("a@b", 9, 0, 1), ref}, etf.Tuple{etf.Atom("terminate"), etf.Atom("why")},
	}, etf.AllCaps)
	if err != nil {
		t.Fatal(err)
	}
	var c caller
	s := &Server{Handler: new(server), End: func(why etf.Term) { c.sent = append(c.sent, fmt.Sprint("ended: ", why)) }}
	for range 2 {
		c.sent = nil
		c.caps = etf.AllCaps
		if err := s.Receive(message, &c); err != nil {
			t.Fatal(err)
		}
		if s.End != nil {
			if len(c.sent) != 2 || !strings.HasSuffix(c.sent[0], "w\x02ok") || c.sent[1] != "ended: why" {
				t.Errorf("%q", c.sent)
			}
		} else if len(c.sent) != 1 || !strings.Contains(c.sent[0], "unknown_system_msg") {
			t.Errorf("%q", c.sent)
		}
		s.End = nil
	}
}

// A request beyond the limits is answered, too.
func TestSystemBeyondLimits(t *testing.T) {
	big := new(big.Int).Lsh(big.NewInt(1), 8*etf.MaxIntegerBytes)
	message, err := etf.Append(nil, etf.Tuple{
		etf.Atom("system"), etf.Tuple{etf.NewPid("a@b", 9, 0, 1), int64(1)}, etf.Tuple{etf.Atom("terminate"), big},
	}, etf.AllCaps)
	if err != nil {
		t.Fatal(err)
	}
	c := caller{caps: etf.AllCaps}
	s := &Server{Handler: new(server), End: func(etf.Term) { t.Error("it ended") }}
	if err := s.Receive(message, &c); err != nil || len(c.sent) != 1 || !strings.Contains(c.sent[0], "system_limit") {
		t.Errorf("%q, %v", c.sent, err)
	}
}

func TestReason(t *testing.T) {
	for _, test := range []struct {
		reason etf.Term
		want   string
	}{
		{etf.Atom("normal"), "normal"},
		{etf.Tuple{etf.Atom("a")}, "\x83h\x01w\x01a"},
		{make([]byte, maxReason), Killed},
		{etf.Atom(strings.Repeat("é", maxReason)), Killed},
	} {
		if got := Reason(test.reason); got != test.want {
			t.Errorf("%.20v: %q, want %q", test.reason, got, test.want)
		}
	}
}
