package idserver

import (
	"reflect"
	"testing"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// What info tells is read as it was meant, also by way of the wire.
func TestFleet(t *testing.T) {
	for _, want := range []Fleet{
		{Time: time.UnixMilli(1700000000123)},
		{Time: time.UnixMilli(1), Since: time.UnixMilli(2), Workers: []Worker{
			{"flake", "flake", 1<<48 - 1, 1<<48 - 1}, {"orders", "snowflake since 12", 0, 4095},
		}},
	} {
		s := &Server{IDs: source(nil), Fleet: func() Fleet { return want }}
		term, err := etf.Append(nil, s.Info().term(), etf.AllCaps)
		if err != nil {
			t.Fatal(err)
		}
		info, err := etf.Decode(term)
		if got, ok := ReadFleet(info); err != nil || !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %v, want %v", got, ok, want)
		}
	}
}

// A node that tells nothing, or nonsense, is not one to be compared with.
func TestNoFleet(t *testing.T) {
	const now, since, workers = etf.Atom("time"), etf.Atom("since"), etf.Atom("workers")
	told := func(w ...etf.Term) etf.Term {
		return etf.List{property(now, int64(1)), property(since, int64(0)), property(workers, etf.List(w))}
	}
	if _, ok := ReadFleet(told(etf.Tuple{etf.Atom("a"), etf.String("b"), int64(1), int64(2)})); !ok {
		t.Error("one that is as it should be")
	}
	for _, info := range []etf.Term{
		nil, etf.Atom("ok"), etf.List{}, (&Server{IDs: source(nil)}).Info().term(),
		etf.List{property(now, int64(1)), property(since, int64(0))},
		told(etf.Atom("x")),
		told(etf.Tuple{etf.Atom("a"), etf.String("b"), int64(1)}),
		told(etf.Tuple{etf.Atom("a"), etf.String("b"), int64(1), etf.Atom("x")}),
	} {
		if f, ok := ReadFleet(info); ok {
			t.Errorf("%v: %v", info, f)
		}
	}
}
