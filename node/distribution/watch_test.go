package distribution

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// A monitor ends with the exit reason of the process, and returns the peer's terms byte
// for byte.
func TestMonitor(t *testing.T) {
	for item, pid := range map[string]etf.Term{"name": etf.Atom("flake"), "pid": ours, "old pid": oursOld} {
		for words, ref := range map[string]etf.Ref{"3": ref3, "4": ref4, "5": ref5, "old 3": oldRef(there, 1)} {
			t.Run("by "+item+", words "+words, func(t *testing.T) {
				bubble(t, flags, func(t *testing.T, r *rig) {
					r.send(monitorP(pid, ref))
					r.want()
					r.end(ourID, "killed")
					r.want(down(pid, ref, "killed"))
					r.end(ourID, "killed")
					r.want()
				})
			})
		}
	}
}

// A name in ATOM_EXT is returned in ATOM_EXT.
func TestMonitorEchoesName(t *testing.T) {
	for name, process := range map[string]string{"d\x00\x05flake": "flake", "d\x00\x06nosuch": ""} {
		bubble(t, flags, func(t *testing.T, r *rig) {
			modern := external(etf.Atom(name[3:]))
			old := func(b []byte) []byte {
				b = bytes.Replace(b, modern, []byte(name), 1)
				b[3] += byte(len(name) - len(modern))
				return b
			}
			r.send(old(monitorP(etf.Atom(name[3:]), ref5)))
			reason := etf.Atom("noproc")
			if process != "" {
				r.want()
				r.end(ourID, "killed")
				reason = "killed"
			}
			r.want(old(down(etf.Atom(name[3:]), ref5, reason)))
		})
	}
}

func TestNoproc(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.send(monitorP(etf.Atom("nosuch"), ref5), monitorP(etf.Atom(""), ref4), monitorP(gone, ref3),
			frame(etf.Tuple{number(wire.OpLink), theirs, gone}))
		r.want(
			down(etf.Atom("nosuch"), ref5, "noproc"),
			down(etf.Atom(""), ref4, "noproc"),
			down(gone, ref3, "noproc"),
			frame(etf.Tuple{number(wire.OpExit), gone, theirs, etf.Atom("noproc")}),
		)
	})
}

func TestDemonitor(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		flake := etf.Atom("flake")
		r.send(monitorP(flake, ref3), monitorP(flake, ref4), monitorP(ours, ref5), monitorP(flake, ref3),
			frame(etf.Tuple{number(wire.OpDemonitorP), theirs, flake, ref4}),
			frame(etf.Tuple{number(wire.OpDemonitorP), theirs, flake, refOf(1)})) // never set
		r.end(ourID, "killed")
		got := r.received()
		if len(got) == 2 && bytes.Equal(got[0], down(ours, ref5, "killed")) {
			got[0], got[1] = got[1], got[0] // the order is not specified
		}
		if want := [][]byte{down(flake, ref3, "killed"), down(ours, ref5, "killed")}; show(got) != show(want) {
			t.Errorf("got %s\nwant %s", show(got), show(want))
		}
		r.send(tick)
		if synctest.Wait(); r.conn.watches.held != 0 {
			t.Errorf("%d bytes are kept for later watches after a tick", r.conn.watches.held)
		}
	})
}

// The end of a process is reported to its watchers, and so is the end of the next process with
// the same name.
func TestEnded(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		box := etf.NewPid(here, 0, 1<<8, creation)
		r.send(monitorP(etf.Atom("flake"), ref3), monitorP(ours, ref4), monitorP(etf.Atom("box"), ref5),
			frame(etf.Tuple{number(wire.OpLink), theirs, ours}),
			frame(etf.Tuple{number(wire.OpLink), theirsToo, box}))
		r.end(ourID, "killed")
		if got := r.received(); len(got) != 3 || strings.Contains(show(got), "box") {
			t.Errorf("the end of flake: %s", show(got))
		}
		r.send(monitorP(ours, ref3), frame(etf.Tuple{number(wire.OpLink), theirsToo, ours})) // the next process of that name
		r.end(ourID, "killed")
		r.want(down(ours, ref3, "killed"), frame(etf.Tuple{number(wire.OpExit), ours, theirsToo, etf.Atom("killed")}))
		r.end(boxID, "killed")
		if got := r.received(); len(got) != 2 {
			t.Errorf("the end of box: %s", show(got))
		}
	})
}

// An exit reason is sent unless it is large or the peer cannot read it.
func TestReasons(t *testing.T) {
	const head = 5 // bytes before the data of a binary
	for _, test := range []struct{ reason, want etf.Term }{
		{etf.Tuple{etf.Atom("a")}, etf.Tuple{etf.Atom("a")}},
		{make([]byte, maxReason-head), make([]byte, maxReason-head)},
		{make([]byte, maxReason-head+1), etf.Atom("killed")},
		{etf.Atom("\u0416"), etf.Atom("killed")}, // not Latin-1
		{struct{}{}, etf.Atom("killed")},         // not a term
	} {
		bubble(t, scalang, func(t *testing.T, r *rig) {
			r.send(monitorP(ours, ref3))
			r.received()
			r.proto.Ended(ourID, test.reason)
			got := r.received()
			var m wire.Message
			if len(got) != 1 {
				t.Fatalf("got %s, want one frame", show(got))
			}
			if err := m.Decode(got[0][5:]); err != nil || m.Op != wire.OpMonitorPExit {
				t.Fatalf("got %s, %v", show(got), err)
			}
			if reason, err := etf.Decode(m.Args[3]); err != nil || !reflect.DeepEqual(reason, test.want) {
				t.Errorf("%.20v: got %v, %v", test.reason, reason, err)
			}
		})
	}
}

// The end of a process is reported even if the process ends while the watch is being set. Earlier
// watches receive the exit reason.
func TestWatchRace(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.send(monitorP(ours, ref5))
		r.want()
		r.local.onFind = func(l *locals) { delete(l.names, "flake") }
		r.send(monitorP(ours, ref3))
		r.want(down(ours, ref3, "noproc"))
		r.local.names["flake"] = &Process{ID: ourID}
		r.send(frame(etf.Tuple{number(wire.OpLink), theirs, ours}))
		r.want(frame(etf.Tuple{number(wire.OpExit), ours, theirs, etf.Atom("noproc")}))
		r.end(ourID, "killed")
		r.want(down(ours, ref5, "killed"))
	})
}

func TestLinks(t *testing.T) {
	link := frame(etf.Tuple{number(wire.OpLink), theirs, ours})
	ended := frame(etf.Tuple{number(wire.OpExit), ours, theirs, etf.Atom("killed")})
	for name, test := range map[string]struct{ then, answer, atEnd []byte }{
		"LINK":              {nil, nil, ended},
		"twice":             {link, nil, ended},
		"UNLINK":            {frame(etf.Tuple{number(wire.OpUnlink), theirs, ours}), nil, nil},
		"UNLINK of another": {frame(etf.Tuple{number(wire.OpUnlink), theirsToo, ours}), nil, ended},
		"EXIT":              {frame(etf.Tuple{number(wire.OpExit), theirs, ours, etf.Atom("why")}), nil, nil},
		"UNLINK_ID": {
			frame(etf.Tuple{number(wire.OpUnlinkID), int64(1 << 40), theirs, ours}),
			frame(etf.Tuple{number(wire.OpUnlinkIDAck), int64(1 << 40), ours, theirs}),
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				r.send(link, test.then)
				if r.want(some(test.answer)...); t.Failed() {
					return
				}
				r.end(ourID, "killed")
				r.want(some(test.atEnd)...)
			})
		})
	}
}

// some returns the frames that are not nil.
func some(frame []byte) [][]byte {
	if frame == nil {
		return nil
	}
	return [][]byte{frame}
}

// UNLINK_ID of a missing link is still acknowledged.
func TestUnlinkIDOfNone(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.send(frame(etf.Tuple{number(wire.OpUnlinkID), int64(7), theirs, gone}))
		r.want(frame(etf.Tuple{number(wire.OpUnlinkIDAck), int64(7), gone, theirs}))
	})
}

// The monitors and links of a peer are bounded; removing one makes room.
func TestMaxWatches(t *testing.T) {
	flake := etf.Atom("flake")
	setLink := func(from etf.Pid) []byte { return frame(etf.Tuple{number(wire.OpLink), from, ours}) }
	for name, test := range map[string]struct{ last, more, refused, back []byte }{
		"monitors": {
			monitorP(flake, ref3),
			monitorP(flake, ref4),
			down(flake, ref4, "system_limit"),
			frame(etf.Tuple{number(wire.OpDemonitorP), theirs, flake, ref3}),
		},
		"links": {
			setLink(theirs),
			setLink(theirsToo),
			frame(etf.Tuple{number(wire.OpExit), ours, theirsToo, etf.Atom("system_limit")}),
			frame(etf.Tuple{number(wire.OpUnlink), theirs, ours}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				w := &r.conn.watches
				w.mu.Lock()
				for i := range maxWatches - 1 {
					w.monitors.set(uint64(i), new(watch))
					w.links.set(uint64(i), new(watch))
				}
				w.mu.Unlock()
				r.send(test.last)
				r.want()
				r.send(test.more)
				r.want(test.refused)
				r.send(test.back, test.more)
				r.want()
			})
		})
	}
}

// A link is removed before its UNLINK_ID is acknowledged: no exit signal may follow the acknowledgment.
func TestUnlinkBeforeAck(t *testing.T) {
	c := quiet()
	from, to := []byte(theirs), []byte(ours)
	c.recvLink(&wire.Message{Args: [wire.MaxArguments][]byte{from, to}})
	before, then := len(c.watches.links.all), -1
	c.out.fail = func(error) { then = len(c.watches.links.all) }
	c.out.queued = maxOutput // so that the acknowledgment fails
	c.recvUnlinkID(&wire.Message{Args: [wire.MaxArguments][]byte{etf.AppendInt(nil, 1), from, to}})
	if before != 1 || then != 0 {
		t.Errorf("%d links before, %d when the acknowledgment is appended; want 1 and 0", before, then)
	}
}

// When the node ends, the end of its processes is reported before the connection is closed.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, flags)
		r.send(monitorP(ours, ref3), frame(etf.Tuple{number(wire.OpLink), theirs, ours}))
		r.end(ourID, "shutdown")
		r.conn.Shutdown()
		r.want(
			down(ours, ref3, "shutdown"),
			frame(etf.Tuple{number(wire.OpExit), ours, theirs, etf.Atom("shutdown")}),
		)
		if r.alive() {
			t.Error("the connection is not closed")
		}
		r.logged("closed by us")
	})
}

// halved is a stream that can be half-closed, after which writes fail.
type halved struct {
	net.Conn
	closed atomic.Bool
}

func (h *halved) CloseWrite() error {
	h.closed.Store(true)
	return nil
}

func (h *halved) Write(b []byte) (int, error) {
	if h.closed.Load() {
		return 0, net.ErrClosed
	}
	return h.Conn.Write(b)
}

// After the output, Shutdown ends the stream to the peer. Until the peer closes its end, or
// shutdownTime is over, it drops what the peer sends.
func TestShutdownHalfCloses(t *testing.T) {
	for name, closes := range map[string]bool{"the peer closes": true, "the peer stays": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, half := newRig(t, ticktime), new(halved)
				r.stream = func(c net.Conn) net.Conn { half.Conn = c; return half }
				r.connectTo(there, flags)
				go r.listen()
				r.send(monitorP(ours, ref3))
				r.end(ourID, "shutdown")
				begun, ended := time.Now(), make(chan struct{})
				go func() {
					r.conn.Shutdown()
					close(ended)
				}()
				r.want(down(ours, ref3, "shutdown"))
				r.tell(etf.Atom("late"))
				r.send(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, old))
				r.send(monitorP(ours, ref4), bytes.Repeat(tick, fullBuffer))
				r.want()
				if got := r.local.flake.take(); got != "" {
					t.Errorf("flake received %s, want nothing", got)
				}
				select {
				case <-ended:
					t.Error("Shutdown does not wait for the peer")
				default:
				}
				if !half.closed.Load() {
					t.Error("the stream is not half-closed")
				}
				if closes {
					r.peer.Close()
				} else {
					time.Sleep(shutdownTime)
				}
				<-ended
				if r.alive() || time.Since(begun) > shutdownTime {
					t.Error("the connection is not closed")
				}
				r.logged("closed by us")
				r.peer.Close()
			})
		})
	}
}

// Shutdown returns after shutdownTime, even if the peer reads slowly or not at all and a tick is
// due.
func TestShutdownEnds(t *testing.T) {
	for name, pause := range map[string]time.Duration{
		"reads nothing": time.Hour, "reads slowly": shutdownTime / 2,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := connectDeaf(t, flags)
				r.conn.say(external(make([]byte, 20*fullOutput)))
				time.Sleep(maxTick - shutdownTime/2)
				var peer sync.WaitGroup
				peer.Go(func() {
					b := make([]byte, fullOutput)
					for {
						time.Sleep(pause)
						if _, err := io.ReadFull(r.peer, b); err != nil {
							return
						}
					}
				})
				begun := time.Now()
				r.conn.Shutdown()
				if got := time.Since(begun); got != shutdownTime {
					t.Errorf("Shutdown took %v, want %v", got, shutdownTime)
				}
				if r.alive() {
					t.Error("the connection is not closed")
				}
				peer.Wait()
			})
		})
	}
}

// Watches behave like a map, and all their bytes are counted.
func TestWatches(t *testing.T) {
	w := &quiet().watches
	rng := rand.New(rand.NewPCG(1, 2))
	want := make(map[int]uint64)
	for step := range uint64(20_000) {
		i := rng.IntN(50)
		ref := []byte(refOf(i))
		process, there := want[i]
		m := w.monitors.all[maphash.Bytes(w.seed, ref)]
		if there != (m != nil) || there && (m.process != process || string(m.terms) != "flake"+string(theirs)) {
			t.Fatalf("step %d: the kept watch is %+v, want one of process %d: %t", step, m, process, there)
		}
		spares := len(w.spares)
		if there {
			spares++
		}
		if rng.IntN(3) > 0 {
			if !w.add(&w.monitors, step, ref, []byte("flake"), []byte(theirs), nil) {
				t.Fatalf("step %d: no room", step)
			}
			want[i] = step
			spares = max(spares-1, 0)
		} else {
			if w.forget(&w.monitors, ref) != there {
				t.Fatalf("step %d: forgotten: %t", step, !there)
			}
			delete(want, i)
		}
		if got, want := w.monitors.idle(), (w.monitors.peak-len(w.monitors.all))*slimEntry; got != want {
			t.Fatalf("step %d: %d bytes idle, want %d", step, got, want)
		}
		held := 0
		for _, m := range slices.AppendSeq(slices.Clone(w.spares), maps.Values(w.monitors.all)) {
			held += m.size()
		}
		if len(w.monitors.all) != len(want) || len(w.spares) != spares || w.held != held {
			t.Fatalf("step %d: %d kept, want %d; %d spares, want %d; %d bytes held, want %d",
				step, len(w.monitors.all), len(want), len(w.spares), spares, w.held, held)
		}
	}
}

// Three connections add and remove watches and release spare memory while the pool is almost full.
// What their accounts have taken stays within two steps of what they hold. Without room for a
// watch, spares are released.
func TestWatchAccounts(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var p pool
		var all [3]watches
		for i := range all {
			all[i].init(newMemory(&p))
			all[i].account.memory.end = func() {}
		}
		filled := everything - 1 - rng.IntN(200_000)
		p.take(filled)
		p.unfreed = maxUnfreed + 1 // so that no connection is ended
		for step := range 1000 {
			w := &all[rng.IntN(len(all))]
			set := &w.monitors
			if rng.IntN(2) == 0 {
				set = &w.links
			}
			key := fmt.Append(nil, rng.IntN(300))
			switch rng.IntN(10) {
			case 0:
				w.shrink()
			case 1, 2, 3:
				w.forget(set, key)
			default:
				ok := w.add(set, 1, key, make([]byte, rng.IntN(1+rng.IntN(3000))), make([]byte, rng.IntN(50)), nil)
				if kept := set.all[maphash.Bytes(w.seed, key)] != nil; ok != kept || !ok && len(w.spares) > 0 {
					t.Fatalf("seed %d, step %d: there is room: %t; kept: %t, with %d spares", seed, step, ok, kept, len(w.spares))
				}
			}
			taken := filled
			for i := range all {
				w := &all[i]
				held := w.monitors.idle() + w.links.idle()
				for _, s := range slices.Concat(w.spares, slices.Collect(maps.Values(w.monitors.all)),
					slices.Collect(maps.Values(w.links.all))) {
					held += s.size()
				}
				if w.account.taken+ownWatches < held || w.account.taken > held+2*accountStep {
					t.Fatalf("seed %d, step %d: %d bytes taken for %d held", seed, step, w.account.taken, held)
				}
				taken += w.account.taken
			}
			if got := int(p.held.Load()); got != taken {
				t.Fatalf("seed %d, step %d: the pool has %d bytes, want %d", seed, step, got, taken)
			}
		}
	}
}
