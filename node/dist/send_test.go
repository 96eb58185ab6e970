package dist

import (
	"net"
	"testing"
	"testing/synctest"

	ergo "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"
	"github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// An answer goes to the alias, if there is one and the peer knows aliases.
func TestAnswer(t *testing.T) {
	hello := external(etf.Atom("hello"))
	self := etf.NewPid(here, 1, 0, creation)
	for name, test := range map[string]struct {
		flags handshake.Flags
		alias []byte
		want  []byte
	}{
		"alias":           {flags, []byte(ref5), frame(etf.Tuple{number(opAliasSend), self, ref5}, hello)},
		"no alias":        {flags, nil, frame(etf.Tuple{number(opSend), etf.Atom(""), theirs}, hello)},
		"alias not known": {flags &^ handshake.Alias, []byte(ref5), frame(etf.Tuple{number(opSend), etf.Atom(""), theirs}, hello)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.flags, func(t *testing.T, r *rig) {
				r.local.flake.receive = func(_ []byte, c Caller) error {
					c.Answer([]byte(theirs), test.alias, append(c.Buffer(), hello...))
					return nil
				}
				call := frame(etf.Tuple{number(opSend), etf.Atom(""), ours}, hello)
				r.send(call, call)
				r.want(test.want, test.want)
			})
		})
	}
}

// An old peer is told nothing in tags that it does not know.
func TestOldPeer(t *testing.T) {
	const (
		head       = "\x70\x83h"
		their      = "g\x64\x00\x0epeer@127.0.0.1\x00\x00\x00\x09\x00\x00\x00\x00\x01"
		ref        = "r\x00\x03\x64\x00\x0epeer@127.0.0.1\x01\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"
		ourSmall   = "gs\x0fflake@127.0.0.1\x00\x00\x03\xe9\x00\x00\x00\x00\xf2"
		ourAtomExt = "gd\x00\x0fflake@127.0.0.1\x00\x00\x03\xe9\x00\x00\x00\x00\xf2"
	)
	for name, test := range map[string]struct {
		flags                   handshake.Flags
		empty, noproc, box, our string
	}{
		"Scalang": {scalang, "s\x00", "s\x06noproc", "s\x03box", ourSmall},
		"older":   {scalang &^ handshake.SmallAtomTags, "d\x00\x00", "d\x00\x06noproc", "d\x00\x03box", ourAtomExt},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.flags, func(t *testing.T, r *rig) {
				raw := func(s string) []byte { return append([]byte{0, 0, 0, byte(len(s))}, s...) }
				r.send(raw(head + "\x04a\x13" + their + "d\x00\x06nosuch" + ref))
				r.want(raw(head + "\x05a\x15d\x00\x06nosuch" + their + ref + test.noproc))

				r.local.flake.receive = func(_ []byte, c Caller) error {
					c.Answer([]byte(their), []byte(ref), append(c.Buffer(), "a\x01"...))
					return nil
				}
				r.send(raw(head + "\x04a\x06" + their + test.empty + "d\x00\x05flake\x83a\x01"))
				r.want(raw(head + "\x03a\x02" + test.empty + their + "\x83a\x01"))

				peer := oldPid(there, 9, 1)
				to := ergoPid(peer)
				r.conn.Send(process{}, to, etf.Atom("box"))
				synctest.Wait()
				their := their
				if test.empty[0] == 's' {
					their = "gs\x0epeer@127.0.0.1" + their[len(their)-9:]
				}
				r.want(raw(head + "\x03a\x02" + test.empty + their + "\x83" + test.box))
				r.conn.Monitor(ourPid, to, ergo.Ref{Node: here, Creation: 1, ID: [5]uint32{1, 2}})
				synctest.Wait()
				ourRef := "r\x00\x03" + test.our[1:len(test.our)-9] + "\x01\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00"
				r.want(raw(head + "\x04a\x13" + test.our + their + ourRef))
			})
		})
	}
}

// process is a local process as Ergo shows it to a connection.
type process struct{ gen.Process }

func (process) Self() ergo.Pid { return ourPid }

// What Ergo's processes send is one frame each.
func TestFromErgo(t *testing.T) {
	their := ergoPid(theirs)
	name := gen.ProcessID{Name: "name", Node: there}
	ref := ergo.Ref{Node: here, Creation: creation, ID: [5]uint32{7, 8}}
	ourRef := etf.NewRef(here, creation, 7, 8, 0)
	hello, empty := etf.Atom("hello"), etf.Atom("")
	for text, test := range map[string]struct {
		do   func(c *Conn) error
		want []byte
	}{
		"Send": {
			func(c *Conn) error { return c.Send(process{}, their, hello) },
			frame(etf.Tuple{number(opSend), empty, theirs}, external(hello)),
		},
		"SendReg": {
			func(c *Conn) error { return c.SendReg(process{}, name, hello) },
			frame(etf.Tuple{number(opRegSend), ours, empty, etf.Atom("name")}, external(hello)),
		},
		"SendAlias": {
			func(c *Conn) error { return c.SendAlias(process{}, ergo.Alias(ergoRef(ref3)), hello) },
			frame(etf.Tuple{number(opAliasSend), ours, ref3}, external(hello)),
		},
		"Link": {
			func(c *Conn) error { return c.Link(ourPid, their) },
			frame(etf.Tuple{number(opLink), ours, theirs}),
		},
		"LinkExit": {
			func(c *Conn) error { return c.LinkExit(their, ourPid, "why") },
			frame(etf.Tuple{number(opExit), ours, theirs, etf.Atom("why")}),
		},
		"Monitor": {
			func(c *Conn) error { return c.Monitor(ourPid, their, ref) },
			frame(etf.Tuple{number(opMonitorP), ours, theirs, ourRef}),
		},
		"Demonitor": {
			func(c *Conn) error { return c.Demonitor(ourPid, their, ref) },
			frame(etf.Tuple{number(opDemonitorP), ours, theirs, ourRef}),
		},
		"MonitorReg": {
			func(c *Conn) error { return c.MonitorReg(ourPid, name, ref) },
			frame(etf.Tuple{number(opMonitorP), ours, etf.Atom("name"), ourRef}),
		},
		"DemonitorReg": {
			func(c *Conn) error { return c.DemonitorReg(ourPid, name, ref) },
			frame(etf.Tuple{number(opDemonitorP), ours, etf.Atom("name"), ourRef}),
		},
	} {
		t.Run(text, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				if err := test.do(r.conn); err != nil {
					t.Fatal(err)
				}
				r.want(test.want)
			})
		})
	}
}

// A link is taken back in the way that the peer knows.
func TestUnlink(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		r.conn.Unlink(ourPid, ergoPid(theirs))
		r.conn.Unlink(ourPid, ergoPid(theirs))
		got := r.received()
		var ids []int64
		for _, f := range got {
			var m control
			if err := m.decode(f[5:]); err != nil || m.op != opUnlinkID || string(m.args[1]) != string(ours) || string(m.args[2]) != string(theirs) {
				t.Fatalf("%v: %s", err, show(got))
			}
			id := etf.NewReader(m.args[0])
			ids = append(ids, id.Int())
		}
		if len(ids) != 2 || ids[0] == ids[1] || ids[0] == 0 {
			t.Errorf("ids %d", ids)
		}
	})
	bubble(t, flags&^handshake.UnlinkID, func(t *testing.T, r *rig) {
		r.conn.Unlink(ourPid, ergoPid(theirs))
		r.want(frame(etf.Tuple{number(opUnlink), ours, theirs}))
	})
}

// What cannot be sent is an error, and nothing is sent of it.
func TestCannotSend(t *testing.T) {
	bubble(t, scalang, func(t *testing.T, r *rig) {
		c := r.conn
		if err := c.SendAlias(process{}, ergo.Alias{}, etf.Atom("x")); err != lib.ErrUnsupported {
			t.Errorf("alias: %v", err)
		}
		beyond := etf.Atom("\u0416") // not Latin-1
		for name, err := range map[string]error{
			"Send":         c.Send(process{}, ourPid, beyond),
			"Send a chan":  c.Send(process{}, ourPid, make(chan int)),
			"SendReg":      c.SendReg(process{}, gen.ProcessID{Name: "x"}, beyond),
			"SendReg name": c.SendReg(process{}, gen.ProcessID{Name: string(beyond)}, etf.Atom("x")),
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		r.want()
		defer func() {
			if recover() == nil {
				t.Error("a pid that no peer can have: no fault")
			}
		}()
		c.encode(ergo.Pid{Node: ergo.Atom(beyond)})
	})
}

// A session tells when it is served, and closes what Ergo has in its place.
func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		leader, led := net.Pipe()
		served := make(chan struct{})
		p := quiet().proto
		p.NetTicktime = ticktime
		events := new(journal)
		p.Up = func(c *Conn) { events.note("up %s", c.Peer().Name) }
		p.Down = func(c *Conn) { events.note("down %s", c.Peer().Name) }
		ci, err := p.Init(t.Context(), leader.(lib.NetReadWriter), here, node.HandshakeDetails{
			Custom: Session{Conn: a, Peer: handshake.Peer{Name: there}, Served: served},
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-served:
			t.Error("served before Serve")
		default:
		}
		go func() {
			p.Serve(ci, newRouter())
			p.Terminate(ci)
		}()
		<-served
		if _, err := led.Read(make([]byte, 1)); err == nil {
			t.Error("what led here is open")
		}
		b.Close()
		<-ci.(*Conn).Done()
		if got, want := events.take(), "up "+there+"\ndown "+there+"\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if _, err := p.Init(t.Context(), nil, here, node.HandshakeDetails{}); err == nil {
			t.Error("no session: no error")
		}
	})
}
