package dist

import (
	"math/big"
	"testing"
	"testing/synctest"

	"github.com/flake-go/flake/node/etf"
)

// What is not spawned is refused in OTP's words.
func TestSpawnRefused(t *testing.T) {
	big := new(big.Int).Lsh(big.NewInt(1), 8*etf.MaxIntegerBytes)
	for _, test := range []struct {
		name               string
		module             etf.Atom
		arguments, options etf.Term
		want               etf.Atom
	}{
		{"too big", "m", etf.List{big}, etf.List{}, "system_limit"},
		{"no list", "m", etf.Atom("x"), etf.List{}, "badarg"},
		{"another arity", "m", etf.List{int64(1), int64(2)}, etf.List{}, "badarg"},
		{"no option", "m", etf.List{int64(1)}, etf.List{etf.Atom("bad")}, "badopt"},
		{"no options", "m", etf.List{int64(1)}, etf.Atom("link"), "badopt"},
		{"a bad value", "m", etf.List{int64(1)}, etf.List{etf.Tuple{etf.Atom("priority"), etf.Atom("x")}}, "badopt"},
		{"refused", "not", etf.List{int64(1)}, etf.List{}, "undef"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				r.proto.Refuse = func(module, function etf.Atom, args []etf.Term) etf.Atom {
					if module == "not" && function == "f" && len(args) == 1 {
						return "undef"
					}
					return ""
				}
				request := etf.Tuple{
					number(opSpawnRequest), ref5, theirs, theirs, etf.Tuple{test.module, etf.Atom("f"), int64(1)}, test.options,
				}
				r.send(frame(request, external(test.arguments)))
				r.want(frame(etf.Tuple{number(opSpawnReply), ref5, theirs, int64(0), test.want}))
			})
		})
	}
}

// As many functions run at a time as MaxSpawned says. Without room for those that
// wait more are refused, as long as so many run.
func TestMaxSpawned(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.proto.shared.take(MaxShared)
		for round := range 2 {
			gate := make(chan struct{})
			for i := range MaxSpawned + 3 {
				if runs := r.conn.Go(func() { <-gate }); runs != (i < MaxSpawned) {
					t.Errorf("round %d: function %d: %t", round, i, runs)
				}
			}
			close(gate)
			r.proto.Wait()
		}
		r.proto.shared.give(MaxShared)
	})
}

// What waits for its turn when the connection ends is not run, and gives back what
// it held.
func TestSpawnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, flags)
		gate := make(chan struct{})
		for range MaxSpawned {
			r.conn.Go(func() { <-gate })
		}
		synctest.Wait()
		if !r.conn.Go(func() { t.Error("run after the end") }) {
			t.Error("refused")
		}
		r.close()
		close(gate)
		r.proto.Wait()
		if held := r.proto.shared.held.Load(); held != 0 {
			t.Errorf("%d octets are still held", held)
		}
	})
}

// A function may hold terms of the message it came by: the room that these take is
// held until it ends, and without room it is refused.
func TestGoHoldsItsMessage(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		runs := false
		r.local.flake.receive = func(_ []byte, c Caller) error {
			runs = c.Go(func() { <-gate })
			return nil
		}
		to := etf.Tuple{number(opRegSend), theirs, etf.Atom(""), etf.Atom("flake")}
		shared := &r.proto.shared
		for _, size := range []int{ownArguments - 10, 2 * ownArguments, 2 * ownMessage} {
			message := external(make([]byte, size))
			r.send(frame(to, message))
			synctest.Wait()
			if got, want := int(shared.held.Load()), weight(message, ownArguments); got != want || !runs {
				t.Errorf("%d octets are held for a message of %d, want %d", got, len(message), want)
			}
			gate <- struct{}{}
			synctest.Wait()
			if got := shared.held.Load(); got != 0 {
				t.Errorf("%d octets are still held", got)
			}
		}
		shared.take(MaxShared)
		r.send(frame(to, external(make([]byte, 2*ownArguments))))
		if synctest.Wait(); runs {
			t.Error("runs without room")
		}
		shared.give(MaxShared)
	})
}
