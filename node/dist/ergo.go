package dist

import (
	"fmt"

	ergo "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/gen"
	"github.com/ergo-services/ergo/lib"
	"github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// The methods of this file are Ergo's ConnectionInterface: what local processes
// send to the peer, and what comes back to them. Messages are terms of package
// etf. All of them return before anything is written.
var _ node.ConnectionInterface = (*Conn)(nil)

// Send sends a message to a process of the peer.
func (c *Conn) Send(_ gen.Process, to ergo.Pid, message ergo.Term) error {
	return c.sendMessage(opSend, nil, c.encode(to), message)
}

// SendReg sends a message to a registered process of the peer.
func (c *Conn) SendReg(from gen.Process, to gen.ProcessID, message ergo.Term) error {
	msg, err := etf.Append(nil, message, c.caps)
	if err != nil {
		return err
	}
	name, err := etf.AppendAtom(nil, etf.Atom(to.Name), c.caps)
	if err != nil {
		return err
	}
	b := etf.AppendTupleHeader(c.out.begin(), 4)
	b = etf.AppendInt(b, int64(opRegSend))
	b = append(b, c.encode(from.Self())...)
	b = etf.MustAppendAtom(b, "", c.caps)
	b = append(b, name...)
	b = append(b, etf.VersionMagic)
	c.out.end(append(b, msg...))
	c.out.poke()
	return nil
}

// SendAlias sends a message to an alias of a process of the peer.
func (c *Conn) SendAlias(from gen.Process, to ergo.Alias, message ergo.Term) error {
	if !c.peer.Flags.Has(handshake.Alias) {
		return lib.ErrUnsupported
	}
	return c.sendMessage(opAliasSend, c.encode(from.Self()), c.encode(ergo.Ref(to)), message)
}

func (c *Conn) sendMessage(o op, first, second []byte, message ergo.Term) error {
	msg, err := etf.Append(nil, message, c.caps)
	if err != nil {
		return err
	}
	c.out.end(append(c.appendHead(c.out.begin(), o, first, second, nil), msg...))
	c.out.poke()
	return nil
}

// Link links a local process with one of the peer.
func (c *Conn) Link(local, remote ergo.Pid) error {
	return c.signal(opLink, c.encode(local), c.encode(remote))
}

// Unlink takes such a link back.
func (c *Conn) Unlink(local, remote ergo.Pid) error {
	if !c.peer.Flags.Has(handshake.UnlinkID) {
		return c.signal(opUnlink, c.encode(local), c.encode(remote))
	}
	id := etf.AppendInt(nil, int64(refs.Add(1)))
	return c.signal(opUnlinkID, id, c.encode(local), c.encode(remote))
}

// LinkExit tells a process of the peer that a local process linked to it ended.
func (c *Conn) LinkExit(to, terminated ergo.Pid, reason string) error {
	return c.signal(opExit, c.encode(terminated), c.encode(to), c.atom(reason))
}

// Monitor sets a monitor of a local process on one of the peer.
func (c *Conn) Monitor(local, remote ergo.Pid, ref ergo.Ref) error {
	return c.signal(opMonitorP, c.encode(local), c.encode(remote), c.encode(ref))
}

// Demonitor takes it back.
func (c *Conn) Demonitor(local, remote ergo.Pid, ref ergo.Ref) error {
	return c.signal(opDemonitorP, c.encode(local), c.encode(remote), c.encode(ref))
}

// MonitorExit is how Ergo tells that a process watched for the peer has ended.
func (c *Conn) MonitorExit(_, terminated ergo.Pid, reason string, _ ergo.Ref) error {
	c.ended(terminated.ID, reason)
	return nil
}

// MonitorReg sets a monitor of a local process on a name of the peer.
func (c *Conn) MonitorReg(local ergo.Pid, remote gen.ProcessID, ref ergo.Ref) error {
	return c.signal(opMonitorP, c.encode(local), c.atom(remote.Name), c.encode(ref))
}

// DemonitorReg takes it back.
func (c *Conn) DemonitorReg(local ergo.Pid, remote gen.ProcessID, ref ergo.Ref) error {
	return c.signal(opDemonitorP, c.encode(local), c.atom(remote.Name), c.encode(ref))
}

// MonitorExitReg is not called: monitors by name are kept by the connection.
func (c *Conn) MonitorExitReg(ergo.Pid, gen.ProcessID, string, ergo.Ref) error {
	return lib.ErrUnsupported
}

func (c *Conn) signal(o op, args ...[]byte) error {
	c.sendControl(o, args...)
	c.out.poke()
	return nil
}

// recvMonitorExit: a process of the peer that a local process monitors ended.
func (c *Conn) recvMonitorExit(m *control) error {
	proc, ref := m.args[0], ergoRef(etf.Ref(m.args[2]))
	reason := string(etf.FormatRaw(nil, m.args[3], maxReason))
	if isAtom(proc) {
		r := etf.NewReader(proc)
		name := gen.ProcessID{Name: string(r.Atom()), Node: c.peer.Name}
		return c.router.RouteMonitorExitReg(name, reason, ref)
	}
	if err := c.ofPeer(proc); err != nil {
		return err
	}
	return c.router.RouteMonitorExit(ergoPid(etf.Pid(proc)), reason, ref)
}

// ofPeer refuses a pid of another node than the peer where Ergo would believe that
// the process has ended: one of ours, say, whose supervisor would then see to it.
func (c *Conn) ofPeer(pid []byte) error {
	if node := etf.Pid(pid).Node(); string(node) != c.peer.Name {
		return fmt.Errorf("the end of a process of %q, which is not the peer", node)
	}
	return nil
}

// recvExit: a process of the peer that is linked with a local process ended. Of
// a link that the peer set the connection knows, of one that a local process
// set Ergo does.
func (c *Conn) recvExit(m *control) error {
	from, to, reason := m.args[0], m.args[1], m.args[m.n-1]
	if err := c.ofPeer(from); err != nil {
		return err
	}
	linked := c.unlink(from, to)
	p := c.find(to)
	if p == nil {
		return nil
	}
	if linked {
		if err := c.trapped(p, from, reason); err != nil {
			return err
		}
	}
	return c.router.RouteExit(p.Pid, ergoPid(etf.Pid(from)), string(etf.FormatRaw(nil, reason, maxReason)))
}

// maxReason bounds an exit reason, which to Ergo is a string.
const maxReason = 200

// Creation is that of the peer.
func (c *Conn) Creation() uint32 { return c.peer.Creation }

// Stats counts nothing: the connections have metrics of their own.
func (c *Conn) Stats() node.NetworkStats { return node.NetworkStats{NodeName: c.peer.Name} }

// pid stands for the connection where Ergo wants a process of the peer.
func (c *Conn) pid() ergo.Pid {
	return ergo.Pid{Node: ergo.Atom(c.peer.Name), ID: 0, Creation: c.peer.Creation}
}

// encode gives one of Ergo's pids or references as a term that the peer knows.
func (c *Conn) encode(t ergo.Term) []byte {
	var term etf.Term
	switch t := t.(type) {
	case ergo.Pid:
		term = etf.NewPid(etf.Atom(t.Node), uint32(t.ID), uint32(t.ID>>32), t.Creation)
	case ergo.Ref:
		term = etf.NewRef(etf.Atom(t.Node), t.Creation, t.ID[:3]...)
	}
	b, err := etf.Append(nil, term, c.caps)
	if err != nil {
		panic(fmt.Sprintf("dist: %v", err)) // a node name that the handshake let through
	}
	return b
}

// ergoPid keeps both numbers of a pid in Ergo's one.
func ergoPid(p etf.Pid) ergo.Pid {
	return ergo.Pid{
		Node: ergo.Atom(p.Node()), ID: uint64(p.Serial())<<32 | uint64(p.ID()), Creation: p.Creation(),
	}
}

func ergoRef(r etf.Ref) ergo.Ref {
	ref := ergo.Ref{Node: ergo.Atom(r.Node()), Creation: r.Creation()}
	copy(ref.ID[:], r.Words())
	return ref
}

// Remote spawns and Ergo's proxies are not for Erlang peers.

func (c *Conn) SpawnRequest(string, string, gen.RemoteSpawnRequest, ...ergo.Term) error {
	return lib.ErrUnsupported
}
func (c *Conn) SpawnReply(ergo.Pid, ergo.Ref, ergo.Pid) error      { return lib.ErrUnsupported }
func (c *Conn) SpawnReplyError(ergo.Pid, ergo.Ref, error) error    { return lib.ErrUnsupported }
func (c *Conn) ProxyConnectRequest(node.ProxyConnectRequest) error { return lib.ErrUnsupported }
func (c *Conn) ProxyConnectReply(node.ProxyConnectReply) error     { return lib.ErrUnsupported }
func (c *Conn) ProxyConnectCancel(node.ProxyConnectCancel) error   { return lib.ErrUnsupported }
func (c *Conn) ProxyDisconnect(node.ProxyDisconnect) error         { return lib.ErrUnsupported }
func (c *Conn) ProxyRegisterSession(node.ProxySession) error       { return lib.ErrUnsupported }
func (c *Conn) ProxyUnregisterSession(string) error                { return lib.ErrUnsupported }
func (c *Conn) ProxyPacket(*lib.Buffer) error                      { return lib.ErrUnsupported }
