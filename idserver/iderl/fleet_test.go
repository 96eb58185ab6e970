package iderl

import (
	"reflect"
	"testing"
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
)

// infoOf is what a server answers info with.
func infoOf(s *idserver.Server) []byte {
	t := terms{caps: etf.AllCaps}
	t.info(s.Info())
	return t.dst
}

// What info tells is read as it was meant, also by way of the wire.
func TestFleet(t *testing.T) {
	for _, want := range []idserver.Fleet{
		{Time: time.UnixMilli(1700000000123)},
		{Time: time.UnixMilli(1), Since: time.UnixMilli(2), Workers: []idserver.Worker{
			{Generator: "flake", Kind: "flake", First: 1<<48 - 1, Last: 1<<48 - 1},
			{Generator: "orders", Kind: "snowflake since 12", Last: 4095},
		}},
	} {
		info, err := etf.Decode(infoOf(&idserver.Server{IDs: source(nil), Fleet: func() idserver.Fleet { return want }}))
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
	alone, err := etf.Decode(infoOf(&idserver.Server{IDs: source(nil)}))
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range []etf.Term{
		nil, etf.Atom("ok"), etf.List{}, alone,
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
