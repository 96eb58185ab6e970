package dist

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// passing returns a rig whose peer passes calls on, and another rig that reads
// nothing.
func passing(t *testing.T, by *rig) (other *rig) {
	other = by.another()
	other.connectTo("other@127.0.0.1", flags)
	synctest.Wait()
	return other
}

// sized is an answer; n of them fit in maxPassedOn.
func sized(n int) answer {
	return answer{pid: []byte(theirs), message: external(make([]byte, maxPassedOn/n-1000))}
}

// Passed-on answers wait for a peer behind its own answers, and count against whoever
// passed the calls on until they are written or the peer is gone.
func TestPassedApart(t *testing.T) {
	for name, reads := range map[string]bool{"it reads": true, "it goes": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, by *rig) {
				other := passing(t, by)
				for range 3 {
					other.conn.passOn(sized(4), by.conn)
					synctest.Wait() // the first is being written
				}
				own := external(etf.Atom("own"))
				other.conn.say(own)
				synctest.Wait()
				if got, want := by.conn.share.held, 3*maxPassedOn/4; got < want-5000 || got > want || other.conn.share.held != 0 {
					t.Errorf("%d bytes are held by who passed on, and %d by the other", got, other.conn.share.held)
				}
				if !reads {
					other.close()
					return
				}
				go other.listen()
				got := other.received()
				if len(got) != 4 || !bytes.HasSuffix(got[1], own) { // the first is being written
					t.Errorf("%d answers, want 4 and its own the second", len(got))
				}
				if held := by.conn.share.held; held != 0 {
					t.Errorf("%d bytes are still held", held)
				}
				other.close()
			})
		})
	}
}

// A peer that passes on does not use up another's room; a single answer of any size
// has room.
func TestPassedByMany(t *testing.T) {
	bubble(t, flags, func(t *testing.T, by *rig) {
		other := passing(t, by)
		third := by.another()
		third.connectTo("third@127.0.0.1", flags)
		go third.listen()
		for range 5 {
			other.conn.passOn(sized(4), by.conn)
		}
		large := answer{pid: []byte(theirs), message: external(make([]byte, 2*maxPassedOn))}
		for range 2 {
			other.conn.passOn(large, third.conn)
		}
		go other.listen()
		if got := len(other.received()); got != 5 {
			t.Errorf("%d answers, want 4 of one and 1 of another", got)
		}
		other.close()
		third.close()
	})
}

// When a peer is ended for what it holds, or would be if it were still there, what it
// passed on is dropped.
func TestPassedByEnded(t *testing.T) {
	for name, hasEnded := range map[string]bool{"connected": false, "gone": true} {
		t.Run(name, func(t *testing.T) { testPassedByEnded(t, hasEnded) })
	}
}

func testPassedByEnded(t *testing.T, hasEnded bool) {
	synctest.Test(t, func(t *testing.T) {
		by := connect(t, flags)
		gate := make(chan struct{})
		by.network(gate, func(string) (*rig, error) { return nil, errors.New("no such node") })
		other := passing(t, by)
		for range 4 {
			other.conn.passOn(sized(4), by.conn)
		}
		by.answersLate(gate)
		by.send(ask("$gen_call", etf.NewPid("nowhere@h", 9, 0, 1), "flake", 1, "soon"))
		time.Sleep(2 * longHeld)
		if hasEnded {
			by.close() // what it passed on waits all the same
		}
		left := MaxShared - int(by.proto.shared.held.Load())
		by.proto.shared.take(left)
		if other.conn.share.take(1 << 20); by.alive() || !hasEnded && by.conn.Ending() != EndedShared {
			t.Errorf("ended by %q", by.conn.Ending())
		}
		other.conn.share.give(1 << 20)
		by.proto.shared.give(left)
		go other.listen()
		if got := len(other.received()); got != 1 {
			t.Errorf("%d answers, want the one that was being written", got)
		}
		close(gate)
		other.close()
		by.proto.Wait()
		by.proto.shared.nothing(t)
	})
}
