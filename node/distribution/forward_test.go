package distribution

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

// passedOn returns a request to flake from a process of a node other than the peer.
func passedOn(node string, tag int) []byte {
	return ask("$gen_call", etf.NewPid(etf.Atom(node), 9, 0, 1), "flake", tag, "soon")
}

// network makes the rig's node look up its connections, and connect to other nodes with connect
// once gate is closed.
func (r *rig) network(gate <-chan struct{}, connect func(node string) (*rig, error)) {
	synctest.Wait() // until Serve has delivered
	peers := make(map[string]*Conn)
	r.proto.Connection = func(node string) *Conn {
		r.mu.Lock()
		defer r.mu.Unlock()
		return peers[node]
	}
	r.up = func(c *Conn) {
		r.mu.Lock()
		defer r.mu.Unlock()
		peers[c.peer.Name] = c
	}
	r.proto.Connect = func(node string) error {
		<-gate
		_, err := connect(node)
		return err
	}
}

// An answer to a process of an unconnected node waits for the connection to that node. Other
// answers do not wait.
func TestDelivery(t *testing.T) {
	for name, err := range map[string]error{"we connect": nil, "it connects first": errors.New("connected")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) { testDelivery(t, r, err) })
		})
	}
}

func testDelivery(t *testing.T, r *rig, err error) {
	const third = "third@127.0.0.1"
	open := make(chan struct{})
	close(open)
	r.answersLate(open)
	gate, up, known, served := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	dials := 0
	other := r.another()
	r.network(gate, func(node string) (*rig, error) {
		dials++
		other.connectTo(node, flags)
		go other.listen()
		if err != nil {
			<-known
		}
		return other, err
	})
	register := r.up
	r.up = func(c *Conn) {
		<-up
		register(c)
		close(known)
		<-served
	}
	r.send(passedOn(third, 1), passedOn(third, 2), ask("$gen_call", theirs, "flake", 3, "soon"))
	if got := r.tags(); got != "3" {
		t.Errorf("answers to the peer: %s, want 3", got)
	}
	close(gate)
	synctest.Wait()
	close(up)
	synctest.Wait()
	r.send(passedOn(third, 4)) // must not be answered before the others
	synctest.Wait()
	close(served)
	if got := other.tags(); got != "1 2 4" {
		t.Errorf("answers to the other node: %s, want 1 2 4", got)
	}
	r.send(passedOn(third, 5))
	if got := other.tags(); got != "5" || dials != 1 {
		t.Errorf("answers to the other node: %s, want 5; dialed %d times", got, dials)
	}
	r.want()
	if held, failed := r.proto.pool.held.Load(), len(r.proto.deliveries.unreachable); held != 0 || failed != 0 {
		t.Errorf("%d bytes are still held, %d nodes unreachable", held, failed)
	}
	other.close()
}

// A peer's answers can wait for only a limited number of nodes, and use only a limited amount of
// memory. Answers beyond these limits, to an unreachable node or to this node are sent to the peer
// that forwarded the calls.
func TestDeliveriesFail(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		open := make(chan struct{})
		close(open)
		r.answersLate(open)
		gate := make(chan struct{})
		r.network(gate, func(string) (*rig, error) { return nil, errors.New("no such node") })
		r.send(passedOn(here, 99))
		if got := r.tags(); got != "99" {
			t.Errorf("answered immediately: %s, want 99", got)
		}
		for i := range maxDeliveriesOfPeer + 1 {
			r.send(passedOn(fmt.Sprintf("n%d@h", i), i))
		}
		if got, want := r.tags(), fmt.Sprint(maxDeliveriesOfPeer); got != want {
			t.Errorf("answered immediately: %s, want %s", got, want)
		}
		left := everything - int(r.proto.pool.held.Load())
		r.proto.pool.take(left)
		r.send(passedOn("n0@h", 50)) // without room
		if got := r.tags(); got != "50" {
			t.Errorf("answered immediately: %s, want 50", got)
		}
		r.proto.pool.give(left)
		r.send(passedOn("n0@h", 51)) // the node is already being dialed
		synctest.Wait()
		close(gate)
		if got := len(r.received()); got != maxDeliveriesOfPeer+1 {
			t.Errorf("%d answers came back, want %d", got, maxDeliveriesOfPeer+1)
		}
		gate = make(chan struct{})
		r.network(gate, func(string) (*rig, error) { return nil, errors.New("no such node") })
		time.Sleep(deliveryPause - 1)
		r.send(passedOn("n0@h", 52)) // the node is remembered as unreachable
		if got := r.tags(); got != "52" {
			t.Errorf("answered immediately: %s, want 52", got)
		}
		time.Sleep(time.Nanosecond)
		r.send(passedOn("n0@h", 53))
		if got := r.tags(); got != "" {
			t.Errorf("answered immediately: %s, want none after the pause", got)
		}
		close(gate)
		if got := r.tags(); got != "53" {
			t.Errorf("answers that came back: %s, want 53", got)
		}
		if held := r.proto.pool.held.Load(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

// Many peers together cannot exceed maxDeliveries. If a node is unreachable, each answer is sent to
// the peer that forwarded its call.
func TestDeliveriesOfManyPeers(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		open := make(chan struct{})
		close(open)
		r.answersLate(open)
		gate := make(chan struct{})
		r.network(gate, func(string) (*rig, error) { return nil, errors.New("no such node") })
		var peers []*rig
		for i := range maxDeliveries/maxDeliveriesOfPeer + 1 {
			peer := r.another()
			peer.connectTo(fmt.Sprintf("peer%d@h", i), flags)
			go peer.listen()
			peers = append(peers, peer)
			for j := range maxDeliveriesOfPeer {
				peer.send(passedOn(fmt.Sprintf("n%d@h", i*maxDeliveriesOfPeer+j), j))
			}
			synctest.Wait()
		}
		for _, peer := range peers[:len(peers)-1] {
			peer.want() // their answers wait
		}
		if got := peers[len(peers)-1].tags(); got != "0 1 2 3" {
			t.Errorf("answered immediately: %s, want all of the last peer's", got)
		}
		close(gate)
		synctest.Wait()
		for _, peer := range peers {
			if got := len(peer.received()); peer != peers[len(peers)-1] && got != maxDeliveriesOfPeer {
				t.Errorf("%d answers came back, want %d", got, maxDeliveriesOfPeer)
			}
			peer.close()
		}
	})
}

// A waiting answer takes at least its size from the pool.
func TestDeliverySize(t *testing.T) {
	part := make([]byte, 1000)
	if got := (answer{part, part, part, part, nil}).size(); got < 4*len(part) {
		t.Errorf("an answer holds %d bytes, want at least %d", got, 4*len(part))
	}
}

// The number of remembered unreachable nodes is bounded.
func TestUnreachable(t *testing.T) {
	var s deliveries
	for i := range maxUnreachable {
		s.fail(fmt.Sprint(i))
	}
	if got := len(s.unreachable); got != maxUnreachable {
		t.Errorf("%d nodes are remembered, want %d", got, maxUnreachable)
	}
	s.fail("one more")
	if _, there := s.unreachable["one more"]; !there || len(s.unreachable) > maxUnreachable {
		t.Errorf("%d nodes are remembered; the last one is among them: %t", len(s.unreachable), there)
	}
}

// A peer receives answers to forwarded calls in terms that it can read. Answers that it cannot read
// are dropped, and so are answers for which there is no room because it does not read.
func TestPassOn(t *testing.T) {
	bubble(t, flags, func(t *testing.T, by *rig) {
		by.network(nil, nil)
		r := by.another()
		r.connectTo("older@h", scalang&^handshake.SmallAtomTags)
		synctest.Wait()
		by.proto.deliveries.fail("older@h") // older@h has connected since
		small := answer{message: external(etf.Tuple{int64(1), etf.Atom("ok")})}
		large := answer{message: external(make([]byte, maxPassedOn*3/8))}
		r.passOn(by, answer{message: []byte("no term")})
		r.passOn(by, answer{message: external(etf.Map{})}) // a term that the peer cannot read
		alias := etf.NewRef("older@h", 1, 2)               // of which the peer knows nothing
		r.passOn(by, answer{to: []byte(alias), message: small.message})
		r.passOn(by, small)
		r.logged("the peer cannot read it")
		by.proto.pool.take(everything)
		r.passOn(by, large) // no room for this answer
		by.proto.pool.give(everything)
		for range 3 {
			synctest.Wait()
			r.passOn(by, large)
		}
		r.logged("answer dropped: the peer has not read earlier ones")
		go r.listen()
		got := r.received()
		if len(got) != 3 || !bytes.HasSuffix(got[0], []byte("d\x00\x02ok")) {
			t.Errorf("%d answers, the first %q; want 3, the first with an ATOM_EXT", len(got), got[0])
		}
		if !r.alive() {
			t.Error("the connection has ended")
		}
		r.close()
	})
}

// passOn passes an answer on to r's peer, as if by's peer had forwarded the call.
func (r *rig) passOn(by *rig, a answer) {
	if a.to == nil {
		a.to = []byte(etf.NewPid(etf.Atom(r.conn.peer.Name), 9, 0, 1))
	}
	a.by = by.conn
	by.conn.forward(a)
}

// passing returns a rig for another connection, whose peer does not read.
func passing(t *testing.T, by *rig) (other *rig) {
	other = by.another()
	other.connectTo("other@127.0.0.1", flags)
	synctest.Wait()
	return other
}

// sized returns an answer. Up to n answers of its size fit in maxPassedOn.
func sized(n int) answer {
	return answer{message: external(make([]byte, maxPassedOn/n-1000))}
}

// The trace token of a passed-on answer is sent in a form that the peer can read, or not at all.
func TestPassOnToken(t *testing.T) {
	for name, test := range map[string]struct {
		flags handshake.Flags // of the peer
		label etf.Term
		sent  bool
	}{
		"small label, old peer": {scalang, int64(1), true},
		"4 bytes, old peer":     {scalang, int64(1 << 20), true},
		"big label, old peer":   {scalang &^ handshake.BigSeqtraceLabels, etf.Tuple{theirs}, false},
		"big label":             {flags &^ handshake.SmallAtomTags, etf.Tuple{etf.Atom("label"), theirs}, true},
		"unreadable label":      {flags &^ handshake.MapTag, etf.Map{}, false},
	} {
		bubble(t, flags, func(t *testing.T, by *rig) {
			by.network(nil, nil)
			r := by.another()
			r.connectTo("older@h", test.flags)
			go r.listen()
			synctest.Wait()
			token := etf.Tuple{int64(1), test.label, int64(8), ours, int64(7)}
			r.passOn(by, answer{token: external(token), message: external(etf.Atom("ok"))})
			got := r.received()
			if len(got) != 1 {
				t.Fatalf("%s: %d answers", name, len(got))
			}
			var m wire.Message
			if err := m.Decode(got[0][wire.HeaderSize+1:]); err != nil || (m.N == 3) != test.sent {
				t.Errorf("%s: %v, operation %d with %d elements", name, err, m.Op, m.N)
			}
			if want, err := etf.Append(nil, token, r.conn.caps); test.sent && (err != nil || !bytes.Equal(m.Args[2], want)) {
				t.Errorf("%s: the token is %x, want %x, %v", name, m.Args[2], want, err)
			}
			r.close()
		})
	}
}

// Answers to forwarded calls are written after a peer's own answers. They count against
// the peer that forwarded the calls until they are written or the connection ends.
func TestPassedApart(t *testing.T) {
	for name, reads := range map[string]bool{"the peer reads": true, "the peer leaves": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, by *rig) {
				by.network(nil, nil)
				other := passing(t, by)
				for range 3 {
					other.passOn(by, sized(4))
					synctest.Wait() // the first is being written
				}
				own := external(etf.Atom("own"))
				other.conn.sendHere(answer{to: []byte(theirs), message: own})
				other.conn.out.poke()
				synctest.Wait()
				if got, want := by.conn.memory.held, 3*maxPassedOn/4; got < want-5000 || got > want || other.conn.memory.held != 0 {
					t.Errorf("%d bytes are held by the forwarding peer, and %d by the other", got, other.conn.memory.held)
				}
				if !reads {
					other.close()
					return
				}
				go other.listen()
				got := other.received()
				if len(got) != 4 || !bytes.HasSuffix(got[1], own) { // the first is being written
					t.Errorf("%d answers, want 4 with the peer's own as the second", len(got))
				}
				if held := by.conn.memory.held; held != 0 {
					t.Errorf("%d bytes are still held", held)
				}
				other.close()
			})
		})
	}
}

// Answers to calls that one peer forwards do not use up the room for those of another peer. A
// single answer may be larger than maxPassedOn.
func TestPassedByMany(t *testing.T) {
	bubble(t, flags, func(t *testing.T, by *rig) {
		by.network(nil, nil)
		other := passing(t, by)
		third := by.another()
		third.connectTo("third@127.0.0.1", flags)
		go third.listen()
		other.passOn(by, answer{message: old}) // sent unchanged, because both peers read the same forms
		for range 5 {
			other.passOn(by, sized(4))
		}
		large := answer{message: external(make([]byte, 2*maxPassedOn))}
		for range 2 {
			other.passOn(third, large)
		}
		go other.listen()
		got := other.received()
		if len(got) != 6 || !bytes.HasSuffix(got[0], old) {
			t.Errorf("%d answers, want 5 of one and 1 of another; the first %q", len(got), got[0])
		}
		if _, out := other.conn.Octets(); int(out) != len(bytes.Join(got, nil)) {
			t.Errorf("%d bytes are counted, want %d", out, len(bytes.Join(got, nil)))
		}
		other.close()
		third.close()
	})
}

// When the pool ends a connection to make room, the answers to calls that its peer forwarded
// are dropped, even if the connection had already closed.
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
			other.passOn(by, sized(4))
		}
		third := by.another()
		third.connectTo("third@127.0.0.1", flags)
		synctest.Wait()
		other.passOn(third, sized(8))
		by.answersLate(gate)
		nowhere := etf.NewPid("nowhere@h", 9, 0, 1)
		by.send(ask("$gen_call", nowhere, "flake", 1, "soon"))
		synctest.Wait()
		third.conn.forward(answer{to: []byte(nowhere), message: external(etf.Atom("x")), by: third.conn})
		time.Sleep(2 * longHeld)
		if hasEnded {
			by.close() // the answers to its forwarded calls are still waiting
		}
		left := MaxShared - int(by.proto.pool.held.Load())
		by.proto.pool.take(left)
		if other.conn.memory.take(1 << 20); by.alive() || !hasEnded && by.blame != "shared_memory" {
			t.Errorf("the peer is blamed for %q", by.blame)
		}
		other.conn.memory.give(1 << 20)
		by.proto.pool.give(left)
		go other.listen()
		if got := len(other.received()); got != 2 {
			t.Errorf("%d answers, want the one being written and the third peer's", got)
		}
		if d := by.proto.deliveries.all["nowhere@h"]; d == nil || len(d.waiting) != 1 || d.waiting[0].by != third.conn {
			t.Errorf("%+v: want a delivery of the third peer's answer", d)
		}
		close(gate)
		other.close()
		third.close()
		by.proto.Wait()
		by.proto.pool.nothing(t)
	})
}

// Answers count against maxPassedOn until they are written.
func TestPassedBound(t *testing.T) {
	bubble(t, flags, func(t *testing.T, by *rig) {
		by.network(nil, nil)
		other := passing(t, by)
		for range 2 {
			other.passOn(by, sized(2))
			synctest.Wait() // the first is being written
		}
		head := make([]byte, 4)
		io.ReadFull(other.peer, head)
		io.CopyN(io.Discard, other.peer, int64(binary.BigEndian.Uint32(head)))
		synctest.Wait() // the second is being written
		other.passOn(by, sized(1))
		other.passOn(by, sized(2))
		go other.listen()
		if got := len(other.received()); got != 2 {
			t.Errorf("%d more answers, want 2, each half of maxPassedOn", got)
		}
		other.close()
	})
}

// Frames for one peer count against the peers that forwarded the calls, until they are written or
// dropped.
func TestPassedFrames(t *testing.T) {
	var p pool
	a, b := newMemory(&p), newMemory(&p)
	var q passed
	add := func(by *memory, octets int, want bool) []byte {
		t.Helper()
		f := make([]byte, octets)
		if got := q.add(passedFrame{by, f}); got != want {
			t.Errorf("a frame of %d bytes: %t, want %t", octets, got, want)
		}
		return f
	}
	held := func(when string, ofA, ofB int) {
		t.Helper()
		if q.held.all[a] != ofA || q.held.all[b] != ofB || int(p.held.Load()) != ofA+ofB || a.held != ofA || b.held != ofB {
			t.Errorf("%s: %v, %d in all; want %d and %d", when, q.held.all, p.held.Load(), ofA, ofB)
		}
	}
	next := func(own, waiting, flying, octets int) []byte {
		t.Helper()
		out := q.next(make([]byte, own))
		if len(q.waiting) != waiting || len(q.flying) != flying || len(out) != octets || waiting == 0 && q.waiting != nil {
			t.Errorf("%d bytes are written, %d frames fly and %d wait; want %d, %d, %d",
				len(out), len(q.flying), len(q.waiting), octets, flying, waiting)
		}
		return out
	}
	const size = passedSize
	add(a, 100, true)
	add(b, 200, true)
	add(a, 300, true)
	held("three wait", 400+2*size, 200+size)
	next(5, 0, 3, 605)
	held("three fly", 400+2*size, 200+size)
	add(b, 7, true)
	flying := q.flying
	q.written()
	held("three are written", 0, 7+size)
	if q.flying != nil || flying[0].frame != nil || len(q.held.all) != 1 {
		t.Errorf("written frames are still held: %v, %v", flying, q.held.all)
	}
	add(a, 1, true)
	add(b, 2, true)
	q.drop(b)
	held("frames of b are dropped", 1+size, 0)
	q.drop(nil)
	held("all are dropped", 0, 0)

	add(a, maxPassedOn-100-2*size, true)
	add(a, 100, true)
	add(a, 1, false)
	q.drop(nil)
	add(a, maxPassedOn+1, true)
	add(a, 1, false)
	add(b, 1, true)
	q.drop(nil)
	held("at the limit", 0, 0)

	add(a, fullOutput+1, true)
	add(a, fullOutput-1, true)
	add(a, 1, true)
	next(0, 1, 2, 2*fullOutput)
	q.written()
	next(0, 0, 1, 1)
	q.written()
	large := add(a, fullOutput+1, true)
	if out := next(0, 0, 1, fullOutput+1); &out[0] != &large[0] {
		t.Error("a large frame alone is copied")
	}
	q.written()
	add(a, fullOutput+1, true)
	next(1, 0, 1, fullOutput+2)
	q.written()
	small := add(a, fullOutput, true)
	if out := next(0, 0, 1, fullOutput); &out[0] == &small[0] {
		t.Error("a small frame is not copied")
	}
	q.written()
	add(a, 2*fullOutput, true)
	next(1, 1, 0, 1)
	q.drop(nil)
	held("in the end", 0, 0)
	p.nothing(t)
}
