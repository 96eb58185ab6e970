package flakeserver

import (
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// other is a caller who has said something before.
type other struct {
	genserver.Caller
	caps etf.Caps
}

func (o other) Caps() etf.Caps { return o.caps }
func (other) Serial() int      { return 1 }
func (other) Buffer() []byte   { return []byte("what was there before")[:0] }

// Many calls get what they would get one by one, but for the next id each, as long
// as there are ids.
func TestHandleCalls(t *testing.T) {
	const gap = 3
	for _, caps := range []etf.Caps{etf.AllCaps, {}} {
		s := &Server{IDs: source(nil)}
		first := string(s.HandleCall(nil, []byte("w\x03get"), caps))
		second := first[:len(first)-1] + string(first[len(first)-1]+1)
		for n := 1; n <= 3; n++ {
			got, many := s.HandleCalls([]byte("w\x03get"), n, gap, other{caps: caps})
			if many != min(n, 2) { // as many as the source gives
				t.Fatalf("%d of %d calls were answered", many, n)
			}
			for i, want := range []string{first, second}[:many] {
				size := len(got) / many
				if answer := string(got[i*size : (i+1)*size]); answer[gap:] != want {
					t.Errorf("answer %d: %q, want %q", i, answer[gap:], want)
				}
			}
		}
		if ids := s.Stats().IDs; ids != 1+1+2+2 {
			t.Errorf("counted %d ids", ids)
		}
	}
}

// What has no id in the end, or none at all, is answered call by call.
func TestHandleCallsOneByOne(t *testing.T) {
	for request, err := range map[string]error{
		"w\x03get":                 flake.ErrClosed,
		"h\x02w\x03geta\x3e":       nil,
		"h\x02w\x03geta\xff":       nil,
		"h\x02w\x08get_manya\x03":  nil,
		"h\x03w\x03getw\x04metaa1": nil,
		"w\x04info":                nil,
		"w\x08nonsense":            nil,
	} {
		s := &Server{IDs: source(err)}
		if got, many := s.HandleCalls([]byte(request), 9, 3, other{caps: etf.AllCaps}); many != 0 {
			t.Errorf("%q: %d answers, %q", request, many, got)
		}
		if calls := s.Stats().Calls; len(calls) != 0 {
			t.Errorf("%q: counted %v", request, calls)
		}
	}
}
