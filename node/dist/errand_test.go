package dist

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/flake-go/flake/node/etf"
)

// passedOn is a request to flake by a process of another node than the peer.
func passedOn(node string, tag int) []byte {
	return ask("$gen_call", etf.NewPid(etf.Atom(node), 9, 0, 1), "flake", tag, "soon")
}

// network has the rig's node connect to others, when gate is closed.
func (r *rig) network(gate <-chan struct{}, connect func(node string) (*rig, error)) {
	synctest.Wait() // until Serve has looked
	peers := make(map[string]*Conn)
	r.proto.Connection = func(node string) *Conn {
		r.mu.Lock()
		defer r.mu.Unlock()
		return peers[node]
	}
	r.proto.Up = func(c *Conn) {
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

// An answer to a process of a node that is not connected waits until it is, and
// holds up nothing else.
func TestErrand(t *testing.T) {
	for name, err := range map[string]error{"we connect": nil, "it was first": errors.New("connected")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) { testErrand(t, r, err) })
		})
	}
}

func testErrand(t *testing.T, r *rig, err error) {
	const third = "third@127.0.0.1"
	open := make(chan struct{})
	close(open)
	r.answersLate(open)
	gate, up, known, served := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	dials := 0
	other := &rig{t: t, router: r.router, local: r.local, log: r.log, proto: r.proto}
	r.network(gate, func(node string) (*rig, error) {
		dials++
		other.connectTo(node, flags)
		go other.listen()
		if err != nil {
			<-known
		}
		return other, err
	})
	register := r.proto.Up
	r.proto.Up = func(c *Conn) {
		<-up
		register(c)
		close(known)
		<-served
	}
	r.send(passedOn(third, 1), passedOn(third, 2), ask("$gen_call", theirs, "flake", 3, "soon"))
	if got := r.tags(); got != "3" {
		t.Errorf("answered here: %s, want 3", got)
	}
	close(gate)
	synctest.Wait()
	close(up)
	synctest.Wait()
	r.send(passedOn(third, 4)) // which must not overtake
	synctest.Wait()
	close(served)
	if got := other.tags(); got != "1 2 4" {
		t.Errorf("answered there: %s, want 1 2 4", got)
	}
	r.send(passedOn(third, 5))
	if got := other.tags(); got != "5" || dials != 1 {
		t.Errorf("answered there: %s, want 5; dialled %d times", got, dials)
	}
	r.want()
	if held := r.proto.shared.held.Load(); held != 0 {
		t.Errorf("%d octets are still held", held)
	}
	other.close()
}

// What waits for nodes is bounded, in number and in all. Where there is no way to
// a node, or it is us, answers go where the calls came from.
func TestErrandsFail(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		open := make(chan struct{})
		close(open)
		r.answersLate(open)
		gate := make(chan struct{})
		r.send(passedOn("n0@h", 97)) // there are no other nodes
		r.network(gate, func(string) (*rig, error) { return nil, errors.New("no such node") })
		connect := r.proto.Connect
		r.proto.Connect = nil
		r.send(passedOn("n0@h", 98))
		synctest.Wait()
		r.proto.Connect = connect
		r.send(passedOn(here, 99))
		if got := r.tags(); got != "97 98 99" {
			t.Errorf("answered at once: %s, want 97 98 99", got)
		}
		for i := range maxErrands + 1 {
			r.send(passedOn(fmt.Sprintf("n%d@h", i), 1))
		}
		r.logged("answer dropped")
		left := MaxShared - int(r.proto.shared.held.Load())
		r.proto.shared.take(left)
		r.send(passedOn("n0@h", 2)) // no room
		synctest.Wait()
		r.proto.shared.give(left)
		r.send(passedOn("n0@h", 3)) // which is waited for already
		synctest.Wait()
		close(gate)
		if got := len(r.received()); got != maxErrands+1 {
			t.Errorf("%d answers came back, want %d", got, maxErrands+1)
		}
		if held := r.proto.shared.held.Load(); held != 0 {
			t.Errorf("%d octets are still held", held)
		}
	})
}

// What waits holds no less of the pool than its octets.
func TestErrandSize(t *testing.T) {
	part := make([]byte, 1000)
	if got := (answer{part, part, part, part}).size(); got < 4*len(part) {
		t.Errorf("%d octets are held for %d", got, 4*len(part))
	}
}
