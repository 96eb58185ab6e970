package dist

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// turns starts n goroutines that each post a large answer, in turns, and log how they
// fare.
func (r *rig) turns(n, size int, log *journal) {
	message := external(make([]byte, size))
	for range n {
		r.conn.aside(func() {
			done, ok := r.conn.takeTurn(len(message))
			if !ok {
				log.note("refused")
				return
			}
			log.note("turn")
			r.conn.say(message)
			done()
			log.note("done")
		})
	}
}

// Large answers go one at a time, and others wait for no more than one of them.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		var log journal
		r := connectDeaf(t, flags)
		r.turns(3, size, &log)
		if got := log.take(); got != "turn\n" {
			t.Errorf("while the peer does not read: %q", got)
		}
		if got := r.proto.shared.held.Load(); got < 2*size || got > 2*size+functionSize*3+100 {
			t.Errorf("%d bytes are held for one answer of %d", got, size)
		}
		if done, ok := r.conn.takeTurn(ownLarge); !ok {
			t.Error("a small answer is refused")
		} else {
			r.conn.say(external(etf.Atom("small"))) // without waiting for the large ones
			done()
		}
		go r.listen()
		if got := log.take(); strings.Count(got, "turn") != 2 || strings.Count(got, "done") != 3 {
			t.Errorf("once it reads: %q", got)
		}
		var order strings.Builder
		for _, f := range r.received() {
			order.WriteByte("sL"[min(len(f)/size, 1)])
		}
		if got := order.String(); got != "LsLL" {
			t.Errorf("answers %s, want the small one after one large one", got)
		}
		if got := r.proto.shared.held.Load(); got != 0 {
			t.Errorf("%d bytes are still held", got)
		}
		if got := r.conn.out.account.own; got != ownOutput {
			t.Errorf("the connection has %d bytes of its own, want %d as before", got, ownOutput)
		}
		r.close()
	})
}

// A large answer waits until those that hold all room for long make some.
func TestTurnAwaitsRoom(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		var log journal
		holders := []*share{newShare(&r.proto.shared), newShare(&r.proto.shared)}
		for _, s := range holders { // as frames that do not end
			if !s.take(MaxFrame) {
				t.Fatal("no room for a frame")
			}
		}
		r.turns(1, 1<<20, &log)
		if got := log.take(); got != "" {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(roomTime)
		if got := log.take(); got != "turn\ndone\n" || !holders[0].ended && !holders[1].ended {
			t.Errorf("once they have held it for long: %q", got)
		}
		for _, s := range holders {
			s.give(MaxFrame)
		}
	})
}

// Without room a large answer is refused in the end, but not a small one.
func TestTurnWithoutRoom(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		var log journal
		r.proto.shared.take(everything - functionSize)
		r.turns(1, ownLarge-len(external([]byte{}))+1, &log)
		time.Sleep(roomTime)
		if got := log.take(); got != "refused\n" {
			t.Errorf("large: %q", got)
		}
		r.turns(1, ownLarge-len(external([]byte{})), &log)
		if got := log.take(); got != "turn\ndone\n" || len(r.received()) != 1 {
			t.Errorf("not large: %q", got)
		}
		r.proto.shared.give(everything - functionSize)
	})
}

// Turns end with the connection, and what they held is given back.
func TestTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		r := connectDeaf(t, flags)
		r.turns(MaxSpawned+1, 1<<20, &log)
		synctest.Wait()
		r.close()
		r.proto.Wait()
		if got := log.take(); !strings.HasPrefix(got, "turn\n") || strings.Count(got, "done") != strings.Count(got, "turn") {
			t.Errorf("%q", got)
		}
		if got := r.proto.shared.held.Load(); got != 0 {
			t.Errorf("%d bytes are still held", got)
		}
	})
}
