package commands

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/flake-go/flake/rel/flake/loadgen"
)

// Notes say what limited the result, and the progress line shows the last second.
func TestBenchNotes(t *testing.T) {
	r := benchResult{Rate: 1000, Result: loadgen.Result{CallsPerS: 50, IDs: 200, Compared: 50, Behind: true, Busy: 0.95}}
	r.note()
	want := []string{
		"could not keep up: 1000 calls a second were due, and 50 were made",
		"this program used nearly all of its processors: the node may do more if other machines call it",
		"only 50 ids were compared: more do not fit in memory",
	}
	if !reflect.DeepEqual(r.Notes, want) {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	r.Format, r.Errors = "\x1b[2J", map[string]uint64{"\r": 1}
	if err := show(&b, false, "", r, r.text()); err != nil || strings.ContainsAny(b.String(), "\x1b\r") {
		t.Errorf("%v, text from a node is not escaped: %q", err, b.String())
	}
	b.Reset()
	p := progress{w: &b}
	p.show(loadgen.Result{Seconds: 1, Calls: 100, Latency: map[string]int64{"p99": 2}})
	p.show(loadgen.Result{Seconds: 2, Calls: 300, Latency: map[string]int64{"p99": 1000},
		Errors: map[string]uint64{"a": 1, "b": 2}})
	p.clear()
	if got, want := b.String(), "\r  1 s  100 calls/s  p99 2µs  0 errors\x1b[K\r  2 s  200 calls/s  p99 1ms "+
		" 3 errors\x1b[K\r\x1b[K"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
