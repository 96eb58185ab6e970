package idserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
)

// stock is a source of flake's ids with few ids per tick.
type stock struct {
	formats.Source
	perTick int
	left    int // ticks; then it fails
	err     error

	tick, used int
}

func (s *stock) Reserve(_ context.Context, n int, _ uint8) (formats.Run, error) {
	if s.used == s.perTick {
		s.tick, s.used = s.tick+1, 0
	}
	if s.tick == s.left {
		return formats.Run{}, s.err
	}
	first := formats.Number{Hi: uint64(s.tick), Lo: 7<<16 | uint64(s.used)}
	n = min(n, s.perTick-s.used)
	s.used += n
	return formats.Run{First: first, Count: n}, nil
}

func (s *stock) PerTick() int { return s.perTick }
func (*stock) Waits() uint64  { return 5 }

// serverOf returns a server for s. It makes s behave like a generator of worker 7 without a mark.
func serverOf(t *testing.T, s *stock) *Server {
	t.Helper()
	ids, err := flake.NewGenerator(7, flake.Options{Clock: func() uint64 { return 3000 }})
	if err != nil {
		t.Fatal(err)
	}
	s.Source = formats.Flake(ids)
	return &Server{IDs: s}
}

// lease takes a lease like a caller that is not a node.
func (s *Server) lease(ctx context.Context, n int) ([]formats.Run, error) {
	t := s.TurnOfOther(n)
	defer t.End()
	return s.Take(ctx, KindLease, n, Meta{}, t)
}

func (s *Server) decompose(text string, base int) (formats.Number, []formats.Field, error) {
	id, err := s.Decompose(text, base)
	return id, s.IDs.Format().Fields(id), err
}

func (s *Server) notional(milli uint64) (formats.Number, error) {
	lowest, _, err := s.Span(KindNotional, milli, milli)
	return lowest, err
}

// expect returns a function that compares the results of a method with want. An error is compared
// by its reason.
func expect(t *testing.T, want string) func(results ...any) {
	return func(results ...any) {
		t.Helper()
		last := len(results) - 1
		got := strings.TrimSpace(fmt.Sprintln(results[:last]...))
		if err, _ := results[last].(error); err != nil {
			got = Reason(err)
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Each method returns its result and counts it. Ticks of three ids show where runs end.
func TestServer(t *testing.T) {
	ctx := t.Context()
	s := serverOf(t, &stock{perTick: 3, left: 5, err: flake.ErrClockBackwards})
	expect(t, "{0 458752}")(s.Get(ctx, Meta{}))
	expect(t, "[{{0 458753} 2 <nil>} {{1 458752} 2 <nil>}]")(s.Take(ctx, KindGetMany, 4, Meta{}, nil))
	expect(t, "[{{1 458754} 1 <nil>}]")(s.Take(ctx, KindGetBinary, 1, Meta{}, nil))
	expect(t, "[{{2 458752} 3 <nil>} {{3 458752} 1 <nil>}]")(s.Take(ctx, KindLease, 4, Meta{}, nil))
	expect(t, "system_limit")(s.Take(ctx, KindLease, 1, Meta{}, &Turn{refused: true}))
	expect(t, "clock_running_backwards")(s.Take(ctx, KindLease, 6, Meta{}, nil)) // all or none
	expect(t, "clock_running_backwards")(s.Get(ctx, Meta{}))
	expect(t, "badarg")(s.Get(ctx, Meta{1, true}))
	expect(t, "{2000 0}")(s.notional(2000))
	expect(t, "{1000 0} {2000 18446744073709551615}")(s.Span(KindSpan, 1000, 2000))
	expect(t, "{1 458754} [{time 1 0 64} {worker 7 64 48} {sequence 2 112 16}]")(s.decompose("10000000000070002", 16))
	expect(t, "{1 458754} [{time 1 0 64} {worker 7 64 48} {sequence 2 112 16}]")(s.decompose("0x10000000000070002",
		formats.Canonical))
	expect(t, "badarg")(s.Count(KindInvalid, ErrBadArgument))
	expect(t, "")(s.Count(KindUnknown, nil))
	if i := s.Info(); i.Format != "flake" || i.Worker != 7 || i.IDs != 10 || i.Mark != 0 {
		t.Errorf("%+v", i)
	}
	expect(t, "{10 5 5 [{unknown ok 1} {get ok 1} {get badarg 1} {get clock_running_backwards 1} {invalid badarg 1} "+
		"{get_many ok 1} {get_binary ok 1} {lease ok 1} {lease clock_running_backwards 1} {lease system_limit 1} "+
		"{notional ok 1} {span ok 1} {decompose ok 2} {info ok 1}]}")(s.Stats(), nil)
}

// Info leaves out what is unknown.
func TestInfo(t *testing.T) {
	s := serverOf(t, &stock{perTick: 3})
	s.Started = time.Now().Add(-time.Hour)
	until := time.Now().Add(time.Minute)
	i := s.Info()
	if i.WorkerUntil != 0 || i.WorkerLeft != 0 || i.WorkerFrom != "" || i.WorkerError != "" || i.Mark != 0 ||
		i.Uptime < 3600_000 {
		t.Errorf("%+v", i)
	}
	s.From = func() Origin { return Origin{From: "store", Until: until, Err: errors.New("no answer")} }
	s.IDs = marked{s.IDs}
	i = s.Info()
	if i.WorkerUntil != until.UnixMilli() || i.WorkerLeft <= 0 || i.WorkerLeft > 60_000 || i.WorkerFrom != "store" ||
		i.WorkerError != "no answer" || i.Mark != 5000 || i.Last != 4000 {
		t.Errorf("%+v", i)
	}
}

// marked is a source with a last id and a mark.
type marked struct{ formats.Source }

func (marked) Last() (uint64, uint32) { return 4000, 0 }
func (marked) Mark() time.Time        { return time.UnixMilli(5000) }

// Every error has a reason.
func TestReason(t *testing.T) {
	for _, test := range []struct {
		err  error
		word string
	}{
		{nil, "ok"},
		{ErrBadArgument, "badarg"},
		{flake.ErrClockBackwards, "clock_running_backwards"},
		{flake.ErrTimestampNotSaved, "timestamp_not_saved"},
		{flake.ErrClosed, "shutdown"},
		{ErrNotRegistered, "noproc"},
		{ErrStopping, "stopping"},
		{ErrBusy, "system_limit"},
		{errors.New("another"), "system_limit"},
		{fmt.Errorf("around: %w", flake.ErrClosed), "shutdown"},
	} {
		if got := Reason(test.err); got != test.word {
			t.Errorf("%v: %s, want %s", test.err, got, test.word)
		}
	}
}

// The methods check their arguments.
func TestMethodsCheck(t *testing.T) {
	for name, call := range map[string]func(s *Server) error{
		"a metabyte": func(s *Server) error { _, err := s.Get(t.Context(), Meta{1, true}); return err },
		"another":    func(s *Server) error { _, err := s.Take(t.Context(), KindLease, 1, Meta{1, true}, nil); return err },
		"no ids":     func(s *Server) error { _, err := s.Take(t.Context(), KindGetMany, 0, Meta{}, nil); return err },
		"fewer":      func(s *Server) error { _, err := s.Take(t.Context(), KindGetMany, -1, Meta{}, nil); return err },
		"too many": func(s *Server) error {
			_, err := s.Take(t.Context(), KindGetMany, MaxMany+1, Meta{}, nil)
			return err
		},
		"too large": func(s *Server) error {
			_, err := s.Take(t.Context(), KindGetBinary, MaxMany+1, Meta{}, nil)
			return err
		},
		"no lease":  func(s *Server) error { _, err := s.lease(t.Context(), 0); return err },
		"too long":  func(s *Server) error { _, err := s.lease(t.Context(), MaxLease+1); return err },
		"backwards": func(s *Server) error { _, _, err := s.Span(KindSpan, 2, 1); return err },
		"no text":   func(s *Server) error { _, err := s.Decompose("", formats.Octets); return err },
		"no digits": func(s *Server) error { _, err := s.Decompose("_", 62); return err },
	} {
		s := serverOf(t, &stock{perTick: 1 << 16, left: 100})
		if err := call(s); err != ErrBadArgument {
			t.Errorf("%s: %v, want %v", name, err, ErrBadArgument)
		}
		if got := s.Stats(); got.IDs != 0 || got.Refusals != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Runs that follow each other are merged, and a loop over their ids may stop early.
func TestRuns(t *testing.T) {
	s := serverOf(t, &stock{perTick: 1 << 16, left: 100})
	runs, err := s.lease(t.Context(), 60_000)
	if err != nil || len(runs) != 1 || runs[0].Count != 60_000 {
		t.Errorf("%+v, %v", runs, err)
	}
	if got, want := s.MaxRuns(MaxLease), 2+MaxLease/(1<<16/4); got != want {
		t.Errorf("%d runs at most, want %d", got, want)
	}
	for id := range All(runs) {
		if id != runs[0].First {
			t.Errorf("%v is first", id)
		}
		break
	}
}
