package dist

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// ask is a request of a process to a server.
func ask(word etf.Atom, by etf.Pid, server etf.Atom, tag int, request etf.Atom) []byte {
	message := etf.Tuple{word, etf.Tuple{by, int64(tag)}, request}
	return frame(etf.Tuple{number(wire.OpRegSend), by, etf.Atom(""), server}, external(message))
}

// answersLate makes the rig's processes answer a tag with itself: a request late, in
// its turn, when gate is closed; one aside likewise, in no order; any other at once.
// The answer to a refused one is -1.
func (r *rig) answersLate(gate <-chan struct{}) {
	r.local.flake.receive = func(m *Message) error {
		term, err := etf.Decode(m.Term())
		if err != nil {
			return err
		}
		request := term.(etf.Tuple)
		from := request[1].(etf.Tuple)
		pid := []byte(from[0].(etf.Pid))
		reply := external(from[1])
		build := func(_ []byte, room bool) []byte {
			if !room {
				return external(int64(-1))
			}
			<-gate
			return reply
		}
		switch request[2] {
		case etf.Atom("late"):
			m.SendInTurn(pid, nil, len(reply), build)
		case etf.Atom("aside"):
			m.SendAside(pid, nil, build)
		case etf.Atom("wrong"):
			return errors.New("wrong")
		default:
			m.Send(pid, nil, append(m.Buffer(), reply...))
		}
		return nil
	}
	r.local.names["other"] = &Process{ID: 1002, Receive: r.local.flake.Receive}
}

// tags returns the tags of the answers received.
func (r *rig) tags() string {
	r.t.Helper()
	var tags []string
	for _, f := range r.received() {
		if bytes.Equal(f, tick) {
			continue
		}
		reader := etf.NewReader(f[6:])
		reader.Raw()
		reader.Version()
		tags = append(tags, fmt.Sprint(reader.Int()))
	}
	return strings.Join(tags, " ")
}

// Requests of a process made while a server builds its answer are answered after that,
// in order. Others are answered at once, and other servers answer it at once.
func TestInOrder(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(
			ask("$gen_call", theirs, "flake", 1, "late"), ask("$gen_call", theirs, "flake", 2, "soon"),
			ask("system", theirs, "flake", 3, "soon"), ask("$gen_call", theirsToo, "flake", 4, "soon"),
			ask("$gen_call", theirs, "other", 5, "soon"), ask("$gen_call", theirs, "flake", 6, "late"),
			ask("$gen_call", theirs, "flake", 7, "aside"), ask("$gen_call", theirsToo, "flake", 8, "late"),
			ask("$gen_call", theirs, "flake", 9, "soon"),
		)
		if got, want := r.tags(), "4 5"; got != want {
			t.Errorf("answered meanwhile: %s, want %s", got, want)
		}
		gate <- struct{}{}
		gate <- struct{}{}
		gate <- struct{}{}
		if got := strings.ReplaceAll(r.tags(), " 8", ""); strings.TrimPrefix(got, "8 ") != "1 2 3 6" {
			t.Errorf("answered then: %s, want 1 2 3 6", got)
		}
		gate <- struct{}{}
		if got := r.tags(); got != "7 9" {
			t.Errorf("answered at last: %s, want 7 9", got)
		}
		if n, held := r.conn.lines.n.Load(), r.conn.lines.held; n != 0 || held != 0 {
			t.Errorf("%d lines, %d bytes in them", n, held)
		}
		if log := r.log.take(); strings.Contains(log, "fault") || strings.Contains(log, "dropped") {
			t.Error(log)
		}
		r.send(ask("$gen_call", theirs, "flake", 10, "soon"))
		if got := r.tags(); got != "10" {
			t.Errorf("answered in the end: %s, want 10", got)
		}
		r.send(ask("$gen_call", theirs, "flake", 11, "late"), ask("$gen_call", theirs, "flake", 12, "wrong"))
		gate <- struct{}{}
		r.logged("message dropped")
	})
}

// A line ends at once when nobody waits in it: a newcomer would not be served.
func TestLineEndsAtOnce(t *testing.T) {
	c := quiet()
	if serve := c.lines.next(c.lines.open("key")); serve != nil || c.lines.n.Load() != 0 || len(c.lines.all.all) != 0 {
		t.Errorf("%d lines", c.lines.n.Load())
	}
}

// An answer for which there is no room is refused, and holds up nothing.
func TestLineRefused(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.answersLate(gate)
		r.proto.shared.take(everything)
		r.send(ask("$gen_call", theirs, "flake", 1, "late"), ask("$gen_call", theirs, "flake", 2, "soon"))
		if got := r.tags(); got != "-1 2" {
			t.Errorf("answered %s, want -1 2", got)
		}
		r.proto.shared.give(everything)
		close(gate)
	})
}

// A message that wants no answer has no line.
func TestNoLine(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		casts := 0
		r.local.flake.receive = func(c *Message) error {
			c.SendInTurn([]byte(theirs), nil, 1, func(_ []byte, room bool) []byte {
				if !room {
					t.Error("refused")
				}
				<-gate
				return nil
			})
			casts++
			return nil
		}
		cast := frame(etf.Tuple{number(wire.OpRegSend), theirs, etf.Atom(""), etf.Atom("flake")}, external(etf.Atom("cast")))
		r.send(cast, cast)
		if synctest.Wait(); casts != 2 {
			t.Errorf("%d casts were handled, want 2", casts)
		}
		close(gate)
		synctest.Wait()
	})
}

// A message in a line holds at least its bytes and what they may become.
func TestLineHolds(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.answersLate(gate)
		token := etf.Tuple{int64(1), etf.Atom(strings.Repeat("x", 255)), int64(7), theirs, int64(6)}
		for _, octets := range []int{ownArguments - 100, 10 * ownArguments} {
			message := external(etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{theirs, int64(2)}, make([]byte, octets)})
			r.send(ask("$gen_call", theirs, "flake", 1, "late"),
				frame(etf.Tuple{number(wire.OpSendTT), etf.Atom(""), ours, token}, message))
			synctest.Wait()
			least := len(message) + len(external(token)) + weight(message, ownArguments)
			if got := r.conn.lines.held; got < least {
				t.Errorf("%d bytes are held, want at least %d", got, least)
			}
			gate <- struct{}{}
			synctest.Wait()
		}
	})
}

// Waiting messages are bounded: without room, nothing more is read until the line has
// ended. Nothing is lost or out of order.
func TestLinesAreBounded(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		const calls = 2 * ownLines / waiterSize
		shared := &r.proto.shared
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(ask("$gen_call", theirs, "flake", 0, "late"))
		synctest.Wait()
		others := everything - int(shared.held.Load())
		shared.take(others)
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
		if held := r.conn.lines.held; held > ownLines || held < ownLines/2 || shared.held.Load() != everything {
			t.Errorf("%d bytes wait in lines, want no more than %d", held, ownLines)
		}
		time.Sleep(2 * ticktime) // during which the peer could not be heard
		close(gate)
		if got := r.tags(); got != strings.Join(want, " ") {
			t.Errorf("answered %s", got)
		}
		if held := int(shared.held.Load()); held != others {
			t.Errorf("%d bytes are held, want %d", held, others)
		}
		shared.give(others)
	})
}

// Lines end with the connection, and their messages are not handled.
func TestLinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, flags)
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(ask("$gen_call", theirs, "flake", 1, "late"), ask("$gen_call", theirs, "flake", 1, "late"))
		for range 2 * ownLines / waiterSize {
			r.send(ask("$gen_call", theirs, "flake", 2, "soon"))
		}
		synctest.Wait()
		if r.proto.shared.held.Load() == 0 {
			t.Error("nothing waits")
		}
		gate <- struct{}{} // the next one is served
		synctest.Wait()
		r.local.flake.receive = func(*Message) error {
			t.Error("handled after the end")
			return nil
		}
		r.close()
		close(gate)
		r.proto.Wait()
		if held := r.proto.shared.held.Load(); held != 0 || r.conn.lines.held != 0 {
			t.Errorf("%d bytes are still held, %d of the pool", r.conn.lines.held, held)
		}
	})
}

// Answers carry on the trace token of their request, with its number counted.
func TestTraceToken(t *testing.T) {
	token := func(serial, last int, from etf.Pid) etf.Tuple {
		return etf.Tuple{int64(1), etf.Atom("label"), int64(serial), from, int64(last)}
	}
	for name, late := range map[string]etf.Atom{"at once": "soon", "late": "late", "aside": "aside"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				gate := make(chan struct{})
				r.answersLate(gate)
				open := func() { // while the connection goes on
					if r.send(tick); late != "soon" {
						gate <- struct{}{}
					}
				}
				message := external(etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{theirs, int64(1)}, late})
				empty := etf.Atom("")
				for _, request := range []etf.Tuple{
					{number(wire.OpRegSendTT), theirs, empty, etf.Atom("flake"), token(7, 6, theirs)},
					{number(wire.OpSendTT), empty, ours, token(7, 6, theirs)},
				} {
					r.send(frame(request, message))
					open()
					r.want(frame(etf.Tuple{number(wire.OpSendTT), empty, theirs, token(8, 7, ours)}, external(int64(1))))
				}
				long := token(7, 6, theirs)
				long[1] = make([]byte, maxToken)
				r.send(
					frame(etf.Tuple{number(wire.OpSendTT), empty, ours, long}, message),
					frame(etf.Tuple{number(wire.OpSendTT), empty, ours, etf.Atom("none")}, message),
					frame(etf.Tuple{number(wire.OpSendTT), empty, ours, token(7, 6, theirs)}, message),
					frame(etf.Tuple{number(wire.OpSend), empty, ours}, message),
				)
				for range 4 {
					open()
				}
				got := r.received()
				slices.SortFunc(got, bytes.Compare) // answers made aside have no order
				without := frame(etf.Tuple{number(wire.OpSend), empty, theirs}, external(int64(1)))
				with := frame(etf.Tuple{number(wire.OpSendTT), empty, theirs, token(8, 7, ours)}, external(int64(1)))
				if want := [][]byte{without, without, without, with}; !slices.EqualFunc(got, want, bytes.Equal) {
					t.Errorf("got %s\nwant %s", show(got), show(want))
				}
			})
		})
	}
}
