package flakeserver

import (
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// Ids that a function takes are counted as those of a call are.
func TestFunctionsAreCounted(t *testing.T) {
	s := serverOf(&stock{perTick: 100, left: 1, err: flake.ErrClockBackwards})
	functions := s.Functions(Surroundings{Output: t.Output()})
	for _, call := range []struct {
		module, function etf.Atom
		args             []etf.Term
	}{
		{"flake_server", "id", nil},
		{"flake_server", "id", []etf.Term{int64(62)}},
		{"flake_harness", "generate", []etf.Term{int64(30)}},
		{"flake_harness", "generate", []etf.Term{int64(20), int64(62)}},
		{"flake_harness", "timed_generate", []etf.Term{int64(10)}},
	} {
		if _, e := functions.Apply(call.module, call.function, call.args); e != nil {
			t.Errorf("%s: %v", call.function, e)
		}
	}
	if got := s.Stats(); got.IDs != 62 || got.Refusals != 0 {
		t.Errorf("%d ids, %d refusals, want 62 and none", got.IDs, got.Refusals)
	}
	if _, e := functions.Apply("flake_harness", "generate", []etf.Term{int64(100)}); e == nil {
		t.Error("ids without end")
	}
	if got := s.Stats(); got.IDs != 62 || got.Refusals != 1 {
		t.Errorf("then %d ids, %d refusals, want 62 and 1", got.IDs, got.Refusals)
	}
}
