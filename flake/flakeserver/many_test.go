package flakeserver

import (
	"context"
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

func (other) Context() context.Context { return context.Background() }
func (other) Buffer() []byte           { return []byte("what was there before")[:0] }

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

// What has no id in the end is answered call by call.
func TestHandlesMany(t *testing.T) {
	for request, want := range map[string]bool{
		"w\x03get":                 true,
		"h\x02w\x03geta\x3e":       false,
		"h\x02w\x03geta\xff":       false,
		"h\x02w\x08get_manya\x03":  false,
		"h\x03w\x03getw\x04metaa1": false,
		"w\x04info":                false,
		"w\x08nonsense":            false,
	} {
		if got := new(Server).HandlesMany([]byte(request)); got != want {
			t.Errorf("%q: %t", request, got)
		}
	}
}

// So are calls for which there is no id.
func TestHandleCallsWithoutIDs(t *testing.T) {
	s := &Server{IDs: source(flake.ErrClosed)}
	if got, many := s.HandleCalls([]byte("w\x03get"), 9, 3, other{caps: etf.AllCaps}); many != 0 || got != nil {
		t.Errorf("%d answers, %q", many, got)
	}
	if calls := s.Stats().Calls; len(calls) != 0 {
		t.Errorf("counted %v", calls)
	}
}
