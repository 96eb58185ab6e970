package node

import (
	"fmt"
	"testing"

	ergo "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
)

// box is a process of Ergo that hands on what reaches it. It traps exits.
type box struct {
	mail  chan gen.ProcessMailboxMessage
	exits chan gen.ProcessGracefulExitRequest
}

func newBox() *box {
	return &box{make(chan gen.ProcessMailboxMessage, 10), make(chan gen.ProcessGracefulExitRequest, 10)}
}

func (b *box) ProcessInit(p gen.Process, _ ...ergo.Term) (gen.ProcessState, error) {
	p.SetTrapExit(true)
	return gen.ProcessState{Process: p}, nil
}

func (b *box) ProcessLoop(p gen.ProcessState, started chan<- bool) string {
	channels := p.ProcessChannels()
	started <- true
	for {
		select {
		case m := <-channels.Mailbox:
			if m.Message == ergo.Term(etf.Atom("stop")) {
				return "stopped"
			}
			b.mail <- m
		case e := <-channels.GracefulExit:
			b.exits <- e
		case <-p.Context().Done():
			return "killed"
		}
	}
}

// spawn starts a node with a box that is registered as box, and a peer of it
// whose pid the box knows.
func spawn(t *testing.T) (b *box, process gen.Process, p *peer, from ergo.Pid) {
	t.Helper()
	n := start(t, Options{})
	b = newBox()
	process, err := n.Ergo().Spawn("box", gen.ProcessOptions{}, b)
	if err != nil {
		t.Fatal(err)
	}
	p = dial(t, n, "a@127.0.0.1")
	p.send(regSend(p.pid, "box"), etf.Atom("hello"))
	return b, process, p, (<-b.mail).From
}

// empty checks that nothing else has reached the box.
func (b *box) empty(t *testing.T, p *peer) {
	t.Helper()
	p.send(regSend(p.pid, "box"), etf.Atom("last"))
	if m := (<-b.mail).Message; m != ergo.Term(etf.Atom("last")) || len(b.exits) > 0 {
		t.Errorf("there was %v, and %d exits", m, len(b.exits))
	}
}

// A process of Ergo gets what a peer sends as terms, and sends terms.
func TestErgoProcess(t *testing.T) {
	b, process, p, from := spawn(t)
	sent := etf.Map{{Key: etf.List{int64(1), etf.Tuple{}}, Value: p.pid}, {Key: etf.Atom("ref"), Value: ref}}
	p.send(regSend(p.pid, "box"), sent)
	got := <-b.mail
	if fmt.Sprint(got.Message) != fmt.Sprint(sent) || got.From != from {
		t.Errorf("got %v from %v", got.Message, got.From)
	}
	if err := process.Send(from, got.Message); err != nil {
		t.Fatal(err)
	}
	p.want("{2,'',<0.9.0>}", string(etf.Format(nil, sent)))
	if err := process.Send(gen.ProcessID{Name: "shell", Node: "a@127.0.0.1"}, etf.Atom("hello")); err != nil {
		t.Fatal(err)
	}
	self := pidOf(p.node, "box").String()
	p.want("{6,"+self+",'',shell}", "hello")

	// To its pid, and to an alias of it.
	p.send(etf.Tuple{int64(2), etf.Atom(""), pidOf(p.node, "box")}, etf.Atom("by pid"))
	if m := (<-b.mail).Message; m != ergo.Term(etf.Atom("by pid")) {
		t.Errorf("got %v", m)
	}
	alias, err := process.CreateAlias()
	if err != nil {
		t.Fatal(err)
	}
	aliasRef := etf.NewRef(etf.Atom(alias.Node), alias.Creation, alias.ID[:3]...)
	p.send(etf.Tuple{int64(33), p.pid, aliasRef}, etf.Atom("by alias"))
	if m := (<-b.mail).Message; m != ergo.Term(etf.Atom("by alias")) {
		t.Errorf("got %v", m)
	}
	b.empty(t, p)
}

func TestErgoMonitorsPeer(t *testing.T) {
	b, process, p, from := spawn(t)
	self := pidOf(p.node, "box").String()

	refs := []ergo.Ref{process.MonitorProcess(from), process.MonitorProcess(gen.ProcessID{Name: "shell", Node: "a@127.0.0.1"})}
	for i, item := range []string{"<0.9.0>", "shell"} {
		control, _ := p.recv()
		if want := "{19," + self + "," + item + "," + refText(refs[i]) + "}"; control != want {
			t.Errorf("%s, want %s", control, want)
		}
	}
	if !process.DemonitorProcess(refs[1]) {
		t.Error("demonitor failed")
	}
	p.want("{20,"+self+",shell,"+refText(refs[1])+"}", none)

	ourRef := etf.NewRef(etf.Atom(refs[0].Node), refs[0].Creation, refs[0].ID[:3]...)
	p.send(etf.Tuple{int64(21), p.pid, pidOf(p.node, "box"), ourRef, etf.Atom("why")})
	if got, want := (<-b.mail).Message, (gen.MessageDown{Ref: refs[0], Pid: from, Reason: "why"}); got != ergo.Term(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}

	lost := process.MonitorProcess(from)
	p.conn.Close()
	if got, want := (<-b.mail).Message, (gen.MessageDown{Ref: lost, Pid: from, Reason: "noconnection"}); got != ergo.Term(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func refText(r ergo.Ref) string {
	return etf.NewRef(etf.Atom(r.Node), r.Creation, r.ID[:3]...).String()
}

func TestErgoLinksPeer(t *testing.T) {
	b, process, p, from := spawn(t)
	self := pidOf(p.node, "box")
	if err := process.Link(from); err != nil {
		t.Fatal(err)
	}
	p.want("{1,"+self.String()+",<0.9.0>}", none)
	p.send(etf.Tuple{int64(3), p.pid, self, etf.Tuple{etf.Atom("bad"), int64(1)}})
	if got, want := <-b.exits, (gen.ProcessGracefulExitRequest{From: from, Reason: "{bad,1}"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	b.empty(t, p)

	if err := process.Link(from); err != nil {
		t.Fatal(err)
	}
	p.want("{1,"+self.String()+",<0.9.0>}", none)
	if err := process.Unlink(from); err != nil {
		t.Fatal(err)
	}
	if control, _ := p.recv(); control[:4] != "{35," {
		t.Errorf("unlink: %s", control)
	}
	p.send(etf.Tuple{int64(3), p.pid, self, etf.Atom("too late")})
	b.empty(t, p)
}

// A process that a peer watches tells it of its end.
func TestPeerWatchesErgo(t *testing.T) {
	_, _, p, _ := spawn(t)
	self := pidOf(p.node, "box")
	p.send(monitor(p.pid, etf.Atom("box"), ref))
	p.send(etf.Tuple{int64(1), p.pid, self})
	p.send(regSend(p.pid, "box"), etf.Atom("stop"))
	p.want("{21,box,<0.9.0>,#Ref<0.5.4.3.2.1>,stopped}", none)
	p.want("{3,"+self.String()+",<0.9.0>,stopped}", none)
	p.send(monitor(p.pid, etf.Atom("box"), ref))
	p.want("{21,box,<0.9.0>,#Ref<0.5.4.3.2.1>,noproc}", none)
}

// A process of Ergo reaches a node that is not connected, by way of EPMD, if it
// has the cookie.
func TestErgoDials(t *testing.T) {
	t.Setenv("ERL_EPMD_PORT", freePort(t))
	t.Setenv("PATH", "") // where there is no epmd
	server := start(t, Options{EPMD: epmd.Auto})
	flake := gen.ProcessID{Name: "flake", Node: name}
	for cookie, ok := range map[string]bool{cookie: true, "guess": false} {
		n := start(t, Options{Name: cookie + "-caller@127.0.0.1", Cookie: cookie, EPMD: epmd.Auto})
		server.connections() // for the race detector: Ergo's start of this one comes before what follows
		b := newBox()
		process, err := n.Ergo().Spawn("box", gen.ProcessOptions{}, b)
		if err != nil {
			t.Fatal(err)
		}
		call := etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{pidOf(n, "box"), int64(7)}, etf.Atom("nonsense")}
		if err := process.Send(flake, call); (err == nil) != ok {
			t.Errorf("cookie %s: %v", cookie, err)
		}
		if ok {
			if got := fmt.Sprint((<-b.mail).Message); got != "[7 ok]" {
				t.Errorf("got %s", got)
			}
		}
		if err := process.Send(gen.ProcessID{Name: "flake", Node: "nobody@127.0.0.1"}, call); err == nil {
			t.Error("nobody was reached")
		}
		n.Stop()
		await(t, "it is gone", func() bool { return len(server.connections()) == 0 })
	}
}
