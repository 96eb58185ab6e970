package dist

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	ergo "github.com/ergo-services/ergo/etf"

	"github.com/flake-go/flake/node/etf"
)

// ask is a request of a process to a server.
func ask(word etf.Atom, by etf.Pid, server etf.Atom, tag int, request etf.Atom) []byte {
	message := etf.Tuple{word, etf.Tuple{by, int64(tag)}, request}
	return frame(etf.Tuple{number(opRegSend), by, etf.Atom(""), server}, external(message))
}

// answersLate has the processes of the rig answer a tag with itself: a request
// late when gate is closed, any other at once.
func (r *rig) answersLate(gate <-chan struct{}) {
	r.local.flake.receive = func(message []byte, c Caller) error {
		term, err := etf.Decode(message)
		if err != nil {
			return err
		}
		m := term.(etf.Tuple)
		from := m[1].(etf.Tuple)
		pid := []byte(from[0].(etf.Pid))
		reply := external(from[1])
		if m[2] != etf.Atom("late") {
			c.Answer(pid, nil, append(c.Buffer(), reply...))
			return nil
		}
		c.GoInOrder(func() {
			<-gate
			c.Post(pid, nil, reply)
		})
		return nil
	}
	r.local.names["other"] = &Process{Pid: ergo.Pid{Node: here, ID: 1002, Creation: creation}, Handler: r.local.flake}
}

// tags gives those of the answers received.
func (r *rig) tags() string {
	r.t.Helper()
	var tags []string
	for _, f := range r.received() {
		reader := etf.NewReader(f[6:])
		reader.Raw()
		reader.Version()
		tags = append(tags, fmt.Sprint(reader.Int()))
	}
	return strings.Join(tags, " ")
}

// What a process asks while a server makes its answer is answered after that one,
// and in order. Others are answered at once, and so is it by other servers.
func TestInOrder(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(
			ask("$gen_call", theirs, "flake", 1, "late"), ask("$gen_call", theirs, "flake", 2, "soon"),
			ask("system", theirs, "flake", 3, "soon"), ask("$gen_call", theirsToo, "flake", 4, "soon"),
			ask("$gen_call", theirs, "other", 5, "soon"), ask("$gen_call", theirs, "flake", 6, "late"),
			ask("$gen_call", theirs, "flake", 7, "soon"), ask("$gen_call", theirsToo, "flake", 8, "late"),
		)
		if got, want := r.tags(), "4 5"; got != want {
			t.Errorf("answered meanwhile: %s, want %s", got, want)
		}
		gate <- struct{}{}
		gate <- struct{}{}
		gate <- struct{}{}
		if got := strings.ReplaceAll(r.tags(), " 8", ""); strings.TrimPrefix(got, "8 ") != "1 2 3 6 7" {
			t.Errorf("answered then: %s, want 1 2 3 6 7", got)
		}
		if n, held := r.conn.lines.n.Load(), r.conn.lines.held; n != 0 || held != 0 {
			t.Errorf("%d lines, %d octets in them", n, held)
		}
		r.send(ask("$gen_call", theirs, "flake", 9, "soon"))
		if got := r.tags(); got != "9" {
			t.Errorf("answered in the end: %s, want 9", got)
		}
	})
}

// What waits in lines is bounded: when there is no more room, nothing more is
// read until the line has ended. Nothing is lost, nor out of order.
func TestLinesAreBounded(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		const calls = 2 * ownLines / waiterSize
		shared := &r.proto.shared
		shared.take(MaxShared)
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(ask("$gen_call", theirs, "flake", 0, "late"))
		want := []string{"0"}
		go func() {
			for i := range calls {
				r.send(ask("$gen_call", theirs, "flake", 1+i, "soon"))
			}
			r.send(ask("$gen_call", theirsToo, "flake", calls+1, "soon"))
		}()
		for i := range calls + 1 {
			want = append(want, fmt.Sprint(1+i))
		}
		if got := r.tags(); got != "" {
			t.Errorf("answered %s", got)
		}
		if held := r.conn.lines.held; held > ownLines || held < ownLines/2 || shared.held.Load() != MaxShared {
			t.Errorf("%d octets wait in lines, want no more than %d", held, ownLines)
		}
		close(gate)
		if got := r.tags(); got != strings.Join(want, " ") {
			t.Errorf("answered %s", got)
		}
		if held := shared.held.Load(); held != MaxShared {
			t.Errorf("%d octets are held, want %d", held, MaxShared)
		}
		shared.give(MaxShared)
	})
}

// With the connection the lines end, and what waits in them is not looked at.
func TestLinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, flags)
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(ask("$gen_call", theirs, "flake", 1, "late"))
		for range 2 * ownLines / waiterSize {
			r.send(ask("$gen_call", theirs, "flake", 2, "soon"))
		}
		synctest.Wait()
		if r.proto.shared.held.Load() == 0 {
			t.Error("nothing waits")
		}
		r.local.flake.receive = func([]byte, Caller) error {
			t.Error("handled after the end")
			return nil
		}
		r.close()
		close(gate)
		r.proto.Wait()
		if held := r.proto.shared.held.Load(); held != 0 {
			t.Errorf("%d octets are still held", held)
		}
	})
}

// Answers carry on the trace token of their request, with its number counted.
func TestTraceToken(t *testing.T) {
	token := func(serial, last int, from etf.Pid) etf.Tuple {
		return etf.Tuple{int64(1), etf.Atom("label"), int64(serial), from, int64(last)}
	}
	for name, late := range map[string]etf.Atom{"at once": "soon", "late": "late"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				gate := make(chan struct{})
				close(gate)
				r.answersLate(gate)
				message := external(etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{theirs, int64(1)}, late})
				empty := etf.Atom("")
				for _, request := range []etf.Tuple{
					{number(opRegSendTT), theirs, empty, etf.Atom("flake"), token(7, 6, theirs)},
					{number(opSendTT), empty, ours, token(7, 6, theirs)},
				} {
					r.send(frame(request, message))
					r.want(frame(etf.Tuple{number(opSendTT), empty, theirs, token(8, 7, ours)}, external(int64(1))))
				}
				r.send(frame(etf.Tuple{number(opSendTT), empty, ours, etf.Atom("none")}, message))
				r.want(frame(etf.Tuple{number(opSend), empty, theirs}, external(int64(1))))
			})
		})
	}
}
