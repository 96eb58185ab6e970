package distribution

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// pass lets time pass while the peer ticks often enough to stay connected.
func (r *rig) pass(d time.Duration) {
	const step = 10 * time.Second
	for ; d > 0; d -= step {
		time.Sleep(min(d, step))
		r.send(tick)
	}
	synctest.Wait()
}

// The node sends a peer four ticks per net_ticktime if it sends nothing else, whatever the peer
// sends.
func TestTicks(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.send(bytes.Repeat(tick, 1000))
		r.want()
		time.Sleep(ticktime/4 - time.Nanosecond)
		r.want()
		time.Sleep(time.Nanosecond)
		r.want(tick)
		r.pass(10 * time.Minute)
		if n := len(r.received()); n != 40 {
			t.Errorf("%d ticks in 10 minutes, want 40", n)
		}
		if !r.alive() {
			t.Error("the connection is closed, although the peer sent ticks")
		}
	})
}

// The pause between ticks is a quarter of net_ticktime, but at most maxTick.
func TestMaxTick(t *testing.T) {
	for ticktime, want := range map[time.Duration]time.Duration{time.Hour: maxTick, 8 * time.Second: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := connectWith(t, flags, ticktime)
			go r.listen()
			time.Sleep(want)
			r.want(tick)
			r.close()
		})
	}
}

// A peer that was sent another frame is not sent a tick.
func TestNoTickAfterAnswer(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		time.Sleep(ticktime / 8)
		for range 20 {
			r.send(monitorP(gone, ref3))
			r.want(down(gone, ref3, "noproc"))
			time.Sleep(ticktime / 4)
		}
	})
}

// A peer that is silent for net_ticktime is disconnected.
func TestSilentPeer(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		time.Sleep(time.Second)
		r.send(tick)
		time.Sleep(ticktime)
		if !r.alive() {
			t.Error("the connection is closed too early")
		}
		time.Sleep(ticktime / 4)
		if r.alive() {
			t.Error("the connection is not closed")
		}
		r.logged("net_tick_timeout")
		if want := "net_tick_timeout"; r.blame != want {
			t.Errorf("the peer is blamed for %q, want %q", r.blame, want)
		}
	})
}

// A tick from the peer does not change Asked.
func TestAsked(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		start := time.Now()
		r.pass(10 * time.Minute)
		if got := r.conn.Asked(); !got.Equal(start) {
			t.Errorf("Asked is %v after the start, want 0", got.Sub(start))
		}
		r.send(monitorP(gone, ref3))
		r.pass(10 * time.Minute)
		if got := r.conn.Asked().Sub(start) - 10*time.Minute; got < 0 || got > maxTick {
			t.Errorf("Asked is %v too late, want at most %v", got, maxTick)
		}
		r.send(monitorP(gone, ref3))
		synctest.Wait()
		if got := r.conn.Asked(); !got.Equal(time.Now()) {
			t.Errorf("Asked was %v ago, want 0", time.Since(got))
		}
	})
}

// A peer that reads nothing is not read from, and is disconnected although it sends ticks.
// Other peers are served.
func TestDeafPeer(t *testing.T) {
	bubble(t, flags, func(t *testing.T, other *rig) {
		r := connectDeaf(t, flags)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for r.alive() {
				r.send(monitorP(gone, ref3), tick) // until it blocks
				time.Sleep(10 * time.Second)
			}
		}()
		other.pass(ticktime)
		if !r.alive() {
			t.Error("the connection is closed too early")
		}
		other.received()
		other.send(monitorP(gone, ref3))
		other.want(down(gone, ref3, "noproc"))
		other.pass(ticktime / 2)
		if r.alive() {
			t.Error("the connection is not closed")
		}
		<-done
	})
}

// A peer that reads slowly stays connected.
func TestSlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connectDeaf(t, flags)
		done := make(chan struct{})
		go func() {
			defer close(done)
			b := make([]byte, len(down(gone, ref3, "noproc")))
			for {
				time.Sleep(ticktime/3 + time.Second) // never at the time of a tick
				if _, err := r.peer.Read(b); err != nil {
					return
				}
			}
		}()
		for range 20 {
			r.send(monitorP(gone, ref3))
		}
		if !r.alive() {
			t.Error("the connection is closed")
		}
		r.close()
		<-done
	})
}

// A peer that reads a large answer piece by piece stays connected, and one that stops
// reading does not.
func TestSlowPeerLargeAnswer(t *testing.T) {
	answer := make([]byte, 20*fullOutput)
	for name, ask := range map[string]func(r *rig){
		"by another goroutine": func(r *rig) { r.tell(answer) },
		"by the reader": func(r *rig) {
			r.local.flake.receive = func(c *Message) error {
				c.Send([]byte(theirs), nil, external(answer))
				return nil
			}
			r.send(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, old))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := connectDeaf(t, flags)
				ask(r)
				for range 19 {
					time.Sleep(ticktime / 2)
					if _, err := io.ReadFull(r.peer, answer[:fullOutput]); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(ticktime / 2)
				if !r.alive() {
					t.Error("the connection is closed")
				}
				time.Sleep(ticktime)
				if r.alive() {
					t.Error("the connection is not closed")
				}
			})
		})
	}
}
