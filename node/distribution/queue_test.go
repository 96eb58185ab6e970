package distribution

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

// ask returns a request from a process to a server.
func ask(word etf.Atom, by etf.Pid, server etf.Atom, tag int, request etf.Atom) []byte {
	message := etf.Tuple{word, etf.Tuple{by, int64(tag)}, request}
	return frame(etf.Tuple{number(wire.OpRegSend), by, etf.Atom(""), server}, external(message))
}

// answersLate makes the rig's processes answer each request with its tag. They answer the request
// "late" on another goroutine, after a receive from gate, or with -1 if there is no room. The
// request "wrong" returns an error.
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
		switch request[2] {
		case etf.Atom("late"):
			m.Later(func(m *Message) {
				if !m.Grow(len(reply)) {
					m.Send(pid, nil, external(int64(-1)))
					return
				}
				<-gate
				m.Send(pid, nil, append(m.Buffer(), reply...))
			})
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

// While a server builds an answer on another goroutine, later requests to it from the same process
// wait, and are then answered in order. Requests from other processes, and to other servers, do not
// wait.
func TestInOrder(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(
			ask("$gen_call", theirs, "flake", 1, "late"), ask("$gen_call", theirs, "flake", 2, "soon"),
			ask("system", theirs, "flake", 3, "soon"), ask("$gen_call", theirsToo, "flake", 4, "soon"),
			ask("$gen_call", theirs, "other", 5, "soon"), ask("$gen_call", theirs, "flake", 6, "late"),
			ask("$gen_call", theirs, "flake", 7, "late"), ask("$gen_call", theirsToo, "flake", 8, "late"),
			ask("$gen_call", theirs, "flake", 9, "soon"),
		)
		if got, want := r.tags(), "4 5"; got != want {
			t.Errorf("answered immediately: %s, want %s", got, want)
		}
		gate <- struct{}{}
		gate <- struct{}{}
		gate <- struct{}{}
		if got := strings.ReplaceAll(r.tags(), " 8", ""); strings.TrimPrefix(got, "8 ") != "1 2 3 6" {
			t.Errorf("answered after the third: %s, want 1 2 3 6", got)
		}
		gate <- struct{}{}
		if got := r.tags(); got != "7 9" {
			t.Errorf("answered after the fourth: %s, want 7 9", got)
		}
		if n, held := r.conn.queues.n.Load(), r.conn.queues.held; n != 0 || held != 0 {
			t.Errorf("%d queues with %d bytes, want none", n, held)
		}
		if log := r.log.take(); strings.Contains(log, "fault") || strings.Contains(log, "dropped") {
			t.Error(log)
		}
		r.send(ask("$gen_call", theirs, "flake", 10, "soon"))
		if got := r.tags(); got != "10" {
			t.Errorf("answered after the queue: %s, want 10", got)
		}
		r.send(ask("$gen_call", theirs, "flake", 11, "late"), ask("$gen_call", theirs, "flake", 12, "wrong"))
		gate <- struct{}{}
		r.logged("message dropped")
	})
}

// A queue keeps no reference to a message that was served or removed, because such a message no
// longer counts against the pool.
func TestQueueForgets(t *testing.T) {
	for name, leave := range map[string]func(s *queues, l *queue){
		"served": func(s *queues, l *queue) {
			for s.next(l) != nil {
			}
		},
		"removed": func(s *queues, _ *queue) { s.clear() },
	} {
		c := quiet()
		l := c.queues.open("key")
		for range 3 {
			l.waiting = append(l.waiting, waiter{serve: func() {}})
		}
		all := l.waiting
		leave(&c.queues, l)
		for i, w := range all {
			if w.serve != nil {
				t.Errorf("%s: message %d is still referred to", name, i)
			}
		}
	}
}

// A served message is no longer counted, even if the pool has no room for the map of queues, which
// has grown.
func TestQueueReleases(t *testing.T) {
	c := quiet()
	s, pool := &c.queues, &c.proto.pool
	l := s.open("key")
	for _, size := range []int{1, ownQueues + accountStep - slimEntry - 1} {
		if !s.grow(size) {
			t.Fatal("the pool has no room")
		}
		l.waiting = append(l.waiting, waiter{size: size, serve: func() {}})
	}
	others := everything - int(pool.held.Load())
	pool.take(others)
	var more []*queue
	for i := range 10 {
		more = append(more, s.open(fmt.Sprint(i)))
	}
	for _, m := range more {
		s.next(m)
	}
	for s.next(l) != nil {
	}
	if s.held != 0 {
		t.Errorf("%d bytes are held", s.held)
	}
	pool.give(others)
	s.clear()
	pool.nothing(t)
}

// If there is no room for an answer, its request is refused and does not delay later ones.
func TestQueueRefused(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.answersLate(gate)
		r.proto.pool.take(everything)
		r.send(ask("$gen_call", theirs, "flake", 1, "late"), ask("$gen_call", theirs, "flake", 2, "soon"))
		if got, n := r.tags(), r.conn.queues.n.Load(); got != "-1 2" || n != 0 {
			t.Errorf("answered %s, want -1 2; %d queues", got, n)
		}
		r.proto.pool.give(functionSize - 1) // room for the message alone
		r.send(ask("$gen_call", theirs, "flake", 3, "late"))
		if got, n := r.tags(), r.conn.queues.n.Load(); got != "-1" || n != 0 {
			t.Errorf("answered %s, want -1; %d queues", got, n)
		}
		r.proto.pool.give(everything - functionSize + 1)
		close(gate)
	})
}

// A message that is not a request has no queue.
func TestNoQueue(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		casts := 0
		r.local.flake.receive = func(c *Message) error {
			c.Later(func(m *Message) {
				if !m.Grow(1) {
					t.Error("Grow returns false")
				}
				<-gate
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

// A queued message holds at least its bytes and the memory of its terms.
func TestQueueHolds(t *testing.T) {
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
			if got := r.conn.queues.held; got < least {
				t.Errorf("%d bytes are held, want at least %d", got, least)
			}
			gate <- struct{}{}
			synctest.Wait()
		}
		r.send(ask("$gen_call", theirs, "flake", 1, "late"))
		synctest.Wait()
		left := everything - functionSize - int(r.proto.pool.held.Load()) // room for the message, but not for its terms
		r.proto.pool.take(left)
		message := external(etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{theirs, int64(2)}, make([]byte, 10*ownArguments)})
		r.send(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, message))
		synctest.Wait()
		if got := int(r.proto.pool.held.Load()); got != everything-functionSize {
			t.Errorf("%d bytes are held, want %d: the reader waits", got, everything-functionSize)
		}
		gate <- struct{}{}
		synctest.Wait()
		r.proto.pool.give(left)
	})
}

// When there is no room for another queued message, nothing is read until the queue has ended. No
// message is lost, and all are answered in order.
func TestQueuesAreBounded(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		const calls = 2 * ownQueues / queuedSize
		pool := &r.proto.pool
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(ask("$gen_call", theirs, "flake", 0, "late"))
		synctest.Wait()
		others := everything - int(pool.held.Load())
		pool.take(others)
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
			t.Errorf("answered %s, want none yet", got)
		}
		if held := r.conn.queues.held; held > ownQueues || held < ownQueues/2 || pool.held.Load() != everything {
			t.Errorf("%d bytes are queued, want at most %d", held, ownQueues)
		}
		time.Sleep(2 * ticktime) // nothing is read from the peer in this time
		close(gate)
		if got := r.tags(); got != strings.Join(want, " ") {
			t.Errorf("answered %s, want all in order", got)
		}
		if held := int(pool.held.Load()); held != others {
			t.Errorf("%d bytes are held, want %d", held, others)
		}
		pool.give(others)
	})
}

// Queues end with the connection, and their messages are not handled.
func TestQueuesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, flags)
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(ask("$gen_call", theirs, "flake", 1, "late"), ask("$gen_call", theirs, "flake", 1, "late"))
		for range 2 * ownQueues / queuedSize {
			r.send(ask("$gen_call", theirs, "flake", 2, "soon"))
		}
		synctest.Wait()
		if r.proto.pool.held.Load() == 0 {
			t.Error("no message is queued")
		}
		gate <- struct{}{} // the next one is served
		synctest.Wait()
		r.local.flake.receive = func(*Message) error {
			t.Error("a message is handled after the end")
			return nil
		}
		r.close()
		close(gate)
		r.proto.Wait()
		if held := r.proto.pool.held.Load(); held != 0 || r.conn.queues.held != 0 {
			t.Errorf("%d bytes are still held, %d of the pool", r.conn.queues.held, held)
		}
	})
}

// Once a connection is ending, queued messages are not handled, even before its queues are removed.
func TestQueueEnding(t *testing.T) {
	c := quiet()
	began, gate := make(chan struct{}), make(chan struct{})
	c.spawnInOrder("key", func() { close(began); <-gate }, 0)
	<-began
	l := c.queues.all.all["key"]
	for range 2 {
		c.queues.grow(queuedSize)
		l.waiting = append(l.waiting,
			waiter{size: queuedSize, serve: func() { t.Error("a message is handled after the end") }})
	}
	c.cancel(errClosed)
	close(gate)
	c.proto.Wait()
	if held := c.proto.pool.held.Load(); held != 0 || c.queues.held != 0 || c.queues.n.Load() != 0 {
		t.Errorf("%d bytes are still held, %d of the pool", c.queues.held, held)
	}
}

// Answers carry the trace token of their request, with its serial incremented.
func TestTraceToken(t *testing.T) {
	token := func(serial, last int, from etf.Pid) etf.Tuple {
		return etf.Tuple{int64(1), etf.Atom("label"), int64(serial), from, int64(last)}
	}
	for name, late := range map[string]etf.Atom{"immediately": "soon", "late": "late"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				gate := make(chan struct{})
				r.answersLate(gate)
				open := func() { // lets a late answer be sent, after a tick from the peer
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
				longest := token(7, 6, theirs)
				longest[1] = []byte{}
				longest[1] = make([]byte, maxToken-len(external(longest)))
				long := slices.Clone(longest)
				long[1] = make([]byte, len(longest[1].([]byte))+1)
				r.send(
					frame(etf.Tuple{number(wire.OpSendTT), empty, ours, longest}, message),
					frame(etf.Tuple{number(wire.OpSendTT), empty, ours, long}, message),
					frame(etf.Tuple{number(wire.OpSendTT), empty, ours, etf.Atom("none")}, message),
					frame(etf.Tuple{number(wire.OpSendTT), empty, ours, token(7, 6, theirs)}, message),
					frame(etf.Tuple{number(wire.OpSend), empty, ours}, message),
				)
				for range 5 {
					open()
				}
				got := r.received()
				slices.SortFunc(got, bytes.Compare) // answers built on other goroutines may arrive in any order
				without := frame(etf.Tuple{number(wire.OpSend), empty, theirs}, external(int64(1)))
				with := frame(etf.Tuple{number(wire.OpSendTT), empty, theirs, token(8, 7, ours)}, external(int64(1)))
				next := token(8, 7, ours)
				next[1] = longest[1]
				withLongest := frame(etf.Tuple{number(wire.OpSendTT), empty, theirs, next}, external(int64(1)))
				if want := [][]byte{without, without, without, with, withLongest}; !slices.EqualFunc(got, want, bytes.Equal) {
					t.Errorf("got %s\nwant %s", show(got), show(want))
				}
			})
		})
	}
}

// While a reader builds a large answer, it holds an element of largeAnswers and a buffer of the
// answer's size.
func TestLargeAnswers(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		for size, places := range map[int]int{1: 0, largeFrame: 0, largeFrame + 1: 1, ownLarge + 1: 1} {
			r.local.flake.receive = func(m *Message) error {
				if !m.Grow(size) || len(largeAnswers) != places || cap(m.Buffer()) < size || cap(m.Buffer()) > size*5/4+64 {
					t.Errorf("%d bytes: %d elements held, a buffer of %d", size, len(largeAnswers), cap(m.Buffer()))
				}
				return nil
			}
			r.send(ask("$gen_call", theirs, "flake", 1, "soon"))
			if synctest.Wait(); len(largeAnswers) != 0 {
				t.Errorf("%d bytes: %d elements are still held", size, len(largeAnswers))
			}
		}
	})
}

// The room for a large answer is returned when the function that builds it returns or calls Grow
// again.
func TestGrow(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		calls := 0
		r.local.flake.receive = func(m *Message) error {
			m.Later(func(m *Message) {
				for size := range 2 {
					if !m.Grow(ownLarge + 1 + size) {
						t.Error("Grow returns false")
					}
					if got := cap(m.Buffer()); got != ownLarge+1+size {
						t.Errorf("the buffer has %d bytes", got)
					}
				}
				calls++
			})
			return nil
		}
		for range 2 { // the second request of each round is queued
			r.send(ask("$gen_call", theirs, "flake", 1, "late"), ask("$gen_call", theirs, "flake", 2, "late"))
			if synctest.Wait(); len(r.conn.large) != 0 || r.conn.out.account.own != ownOutput {
				t.Errorf("%d large answers are sent, %d bytes allowed", len(r.conn.large), r.conn.out.account.own)
			}
			r.proto.pool.nothing(t)
		}
		if calls != 4 {
			t.Errorf("%d calls, want 4", calls)
		}
		r.close()
		if (&Message{conn: r.conn, later: true}).Grow(1) {
			t.Error("Grow finds room after the connection has ended")
		}
	})
}

// large starts n goroutines that each send a large answer and log the outcome.
func (r *rig) large(n, size int, log *journal) {
	message := external(make([]byte, size))
	for range n {
		r.conn.aside(func(m *Message) {
			if !m.Grow(len(message)) {
				log.note("refused")
				return
			}
			log.note("begin")
			m.Send([]byte(theirs), nil, message)
			m.release()
			log.note("done")
		})
	}
}

// Large answers are sent one at a time, and other answers wait for at most one of them.
func TestOneLargeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		var log journal
		r := connectDeaf(t, flags)
		r.large(3, size, &log)
		if got := log.take(); got != "begin\n" {
			t.Errorf("while the peer does not read: logged %q", got)
		}
		if got := r.proto.pool.held.Load(); got < 2*size || got > 2*size+functionSize*3+100 {
			t.Errorf("%d bytes are held for an answer of %d bytes", got, size)
		}
		small := &Message{conn: r.conn, later: true}
		if !small.Grow(ownLarge) || len(largeAnswers) != 0 {
			t.Error("a small answer is refused, or delays readers")
		}
		small.Send([]byte(theirs), nil, external(etf.Atom("small"))) // without waiting for the large ones
		small.release()
		go r.listen()
		if got := log.take(); strings.Count(got, "begin") != 2 || strings.Count(got, "done") != 3 {
			t.Errorf("once the peer reads: logged %q", got)
		}
		var order strings.Builder
		for _, f := range r.received() {
			order.WriteByte("sL"[min(len(f)/size, 1)])
		}
		if got := order.String(); got != "LsLL" {
			t.Errorf("answers %s, want the small one after one large one", got)
		}
		if got := r.proto.pool.held.Load(); got != 0 {
			t.Errorf("%d bytes are still held", got)
		}
		if got := r.conn.out.account.own; got != ownOutput {
			t.Errorf("the connection may hold %d bytes uncounted, want %d as before", got, ownOutput)
		}
		r.close()
	})
}

// A large answer waits until the connections that hold all room have held it for so long that they
// can be ended.
func TestLargeAnswerAwaitsRoom(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		var log journal
		holders := []*memory{newMemory(&r.proto.pool), newMemory(&r.proto.pool)}
		for _, s := range holders { // like frames that never end
			if !s.take(MaxFrame) {
				t.Fatal("no room for a frame")
			}
		}
		r.large(1, 1<<20, &log)
		if got := log.take(); got != "" {
			t.Errorf("logged immediately: %q, want nothing", got)
		}
		time.Sleep(roomTime)
		if got := log.take(); got != "begin\ndone\n" || !holders[0].ended && !holders[1].ended {
			t.Errorf("once other connections have long held their memory: logged %q", got)
		}
		for _, s := range holders {
			s.give(MaxFrame)
			s.freed()
		}
	})
}

// Without room, a large answer is refused after roomTime or when the connection ends, but a small
// one is not. Later ones are sent when there is room.
func TestLargeAnswerWithoutRoom(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		var log journal
		r.proto.pool.take(everything - functionSize)
		r.large(1, ownLarge-len(external([]byte{}))+1, &log)
		time.Sleep(roomTime)
		if got := log.take(); got != "refused\n" {
			t.Errorf("a large answer: logged %q", got)
		}
		r.large(1, ownLarge-len(external([]byte{})), &log)
		if got := log.take(); got != "begin\ndone\n" || len(r.received()) != 1 {
			t.Errorf("an answer that is not large: logged %q", got)
		}
		r.proto.pool.give(everything - functionSize)
		r.large(1, 1<<20, &log)
		if got := log.take(); got != "begin\ndone\n" || len(r.received()) != 1 {
			t.Errorf("a large answer with room again: logged %q", got)
		}
		r.proto.pool.take(everything - functionSize)
		r.large(1, 1<<20, &log)
		synctest.Wait()
		r.close()
		if got := log.take(); got != "refused\n" {
			t.Errorf("the connection is closed while a large answer waits: logged %q", got)
		}
		r.proto.pool.give(everything - functionSize)
	})
}

// Waiting large answers are dropped when the connection ends, and their memory is returned.
func TestLargeAnswersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		r := connectDeaf(t, flags)
		r.large(maxSpawned+1, 1<<20, &log)
		synctest.Wait()
		r.close()
		r.proto.Wait()
		if got := log.take(); !strings.HasPrefix(got, "begin\n") ||
			strings.Count(got, "done") != strings.Count(got, "begin") {
			t.Errorf("logged %q", got)
		}
		if got := r.proto.pool.held.Load(); got != 0 {
			t.Errorf("%d bytes are still held", got)
		}
	})
}

// A connection that has had many queues holds no memory for them when it has ended.
func TestManyQueuesEnd(t *testing.T) {
	const queues = slimMin
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.answersLate(gate)
		for i := range queues {
			r.send(ask("$gen_call", etf.NewPid(there, uint32(i), 0, 1), "flake", i, "late"))
		}
		close(gate)
		if got := len(strings.Fields(r.tags())); got != queues {
			t.Errorf("%d answers, want %d", got, queues)
		}
		if taken := r.conn.queues.account.taken; taken == 0 {
			t.Error("the map is not counted")
		}
	})
}
