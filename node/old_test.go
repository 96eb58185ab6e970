package node

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/rpc"
)

// old is a peer with its own decoder, which fails on anything that its flags do not allow. It
// imitates Scalang, which dates from Erlang R14, and which current Erlang nodes refuse.
type old struct {
	t     *testing.T
	node  *Node
	conn  net.Conn
	flags handshake.Flags
	name  string
	refs  uint32
}

// scalang holds the flags that Scalang sends.
const scalang handshake.Flags = 0x4DBC

// otp25 holds the flags of OTP 25 without MANDATORY_25_DIGEST. That flag implies others, which some
// of the peers must lack.
const otp25 = 0xD07DF7FBC &^ handshake.Mandatory25Digest

const (
	oldCookie    = "flake"
	oldChallenge = 0xFFFFFFFF
)

// oldDial performs the handshake on a stream where each read returns one write of the node,
// because the peer expects one message per read.
func oldDial(t *testing.T, n *Node, name string, flags handshake.Flags) *old {
	t.Helper()
	ours, nodes := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	ours.SetDeadline(time.Now().Add(patience))
	applicant, _ := n.gate.arrive(nodes)
	n.proto.Go(func() { n.greet(applicant) })
	p := &old{t: t, node: n, conn: ours, flags: flags, name: name}

	hello := binary.BigEndian.AppendUint32([]byte{'n', 0, 5}, uint32(flags))
	if p.speaks6() {
		hello = binary.BigEndian.AppendUint64([]byte{'N'}, uint64(flags))
		hello = append(hello, 0, 0, 0, 7, 0, byte(len(name)))
	}
	p.say(append(hello, name...))
	switch got := string(p.hear()); {
	case got == "salive" && flags.Has(handshake.DistHdrAtomCache): // a BEAM
		p.say([]byte("strue"))
	case got != "sok":
		t.Fatalf("status %q", got)
	}
	c := p.challenge(p.hear(), n.Name())
	reply := binary.BigEndian.AppendUint32([]byte{'r'}, oldChallenge)
	p.say(append(reply, oldDigest(c)...))
	if got, want := p.hear(), append([]byte{'a'}, oldDigest(oldChallenge)...); !bytes.Equal(got, want) {
		t.Fatalf("ack %q, want %q", got, want)
	}
	return p
}

func (p *old) speaks6() bool { return p.flags.Has(handshake.Handshake23) }

func oldDigest(challenge uint32) []byte {
	sum := md5.Sum(fmt.Append(nil, oldCookie, challenge))
	return sum[:]
}

// challenge reads a challenge in the peer's version. The challenge must contain the dialed name.
func (p *old) challenge(b []byte, dialed string) uint32 {
	p.t.Helper()
	tag, at, name := "n\x00\x05", 7, 11
	if p.speaks6() {
		tag, at, name = "N", 9, 19
	}
	if len(b) < name || !bytes.HasPrefix(b, []byte(tag)) || string(b[name:]) != dialed {
		p.t.Fatalf("challenge %q", b)
	}
	return binary.BigEndian.Uint32(b[at:])
}

func (p *old) say(message []byte) {
	p.t.Helper()
	b := binary.BigEndian.AppendUint16(nil, uint16(len(message)))
	if _, err := p.conn.Write(append(b, message...)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *old) hear() []byte {
	p.t.Helper()
	b := make([]byte, 1000)
	n, err := p.conn.Read(b)
	if err != nil || n < 2 || int(binary.BigEndian.Uint16(b)) != n-2 {
		p.t.Fatalf("read %q, %v, want one message", b[:n], err)
	}
	return b[2:n]
}

func (p *old) pid() identifier {
	return identifier(p.put([]byte{103}, atom(p.name))) + "\x00\x00\x00\x09\x00\x00\x00\x00\x02"
}

func (p *old) ref() identifier {
	p.refs++
	b := append(p.put([]byte{114, 0, 3}, atom(p.name)), 2)
	return identifier(binary.BigEndian.AppendUint32(append(b, 0, 0, 0, 1, 0, 0, 0, 2), p.refs))
}

// send sends a frame of a control message and at most one message.
func (p *old) send(terms ...any) {
	p.t.Helper()
	b := []byte{0, 0, 0, 0, 112}
	for _, t := range terms {
		b = p.put(append(b, 131), t)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// oldOps are the operations of the peer, by the flag that each needs.
var oldOps = map[int64]handshake.Flags{
	1: 0, 2: 0, 3: 0, 4: 0, 6: 0, 7: 0, 8: 0,
	19: handshake.DistMonitor, 20: handshake.DistMonitor, 21: handshake.DistMonitor,
	22: handshake.SendSender, 24: handshake.ExitPayload, 28: handshake.ExitPayload,
	31: handshake.Spawn, 33: handshake.Alias, 35: handshake.UnlinkID, 36: handshake.UnlinkID,
}

// recv returns the next frame, and answers ticks before it, as Scalang does.
func (p *old) recv() (control tuple, message any) {
	p.t.Helper()
	head := make([]byte, 4)
	for {
		if _, err := io.ReadFull(p.conn, head); err != nil {
			p.t.Fatal(err)
		}
		if n := binary.BigEndian.Uint32(head); n > 0 {
			head = make([]byte, n)
			break
		}
		p.tick()
	}
	if _, err := io.ReadFull(p.conn, head); err != nil {
		p.t.Fatal(err)
	}
	r := &oldReader{p.t, p.flags, head}
	r.want(112, 131)
	control, _ = r.term().(tuple)
	if len(control) == 0 {
		p.t.Fatalf("control message %v", control)
	}
	if need, known := oldOps[control[0].(int64)]; !known || !p.flags.Has(need) {
		p.t.Fatalf("the flags do not allow operation %v", control)
	}
	if len(r.b) > 0 {
		r.want(131)
		message = r.term()
	}
	if len(r.b) > 0 {
		p.t.Fatalf("%x is left over", r.b)
	}
	return control, message
}

func (p *old) tick() {
	p.t.Helper()
	if _, err := p.conn.Write(make([]byte, 4)); err != nil {
		p.t.Fatal(err)
	}
}

// answer reads the next frame, which must be a SEND to the peer.
func (p *old) answer() any {
	p.t.Helper()
	control, message := p.recv()
	if want := (tuple{int64(2), atom(""), p.pid()}); fmt.Sprint(control) != fmt.Sprint(want) {
		p.t.Fatalf("received %q, want %q", control, want)
	}
	return message
}

func (p *old) call(server atom, request any) any {
	p.t.Helper()
	ref := p.ref()
	p.send(tuple{6, p.pid(), atom(""), server}, tuple{atom("$gen_call"), tuple{p.pid(), ref}, request})
	reply, _ := p.answer().(tuple)
	if len(reply) != 2 || reply[0] != ref {
		p.t.Fatalf("%q, want the answer to %q", reply, string(ref))
	}
	return reply[1]
}

// wantCall checks the answer to a call, in the format of package fmt.
func (p *old) wantCall(server atom, request any, want string) {
	p.t.Helper()
	if got := fmt.Sprint(p.call(server, request)); got != want {
		p.t.Errorf("%v: got %s, want %s", request, got, want)
	}
}

// get requests an id in both forms.
func (p *old) get() {
	p.t.Helper()
	id, _ := p.call("flake", atom("get")).(tuple)
	text, _ := p.call("flake", tuple{atom("get"), 62}).(tuple)
	if len(id) != 2 || len(text) != 2 || id[0] != atom("ok") || text[0] != atom("ok") {
		p.t.Fatalf("get: %v, {get, 62}: %v", id, text)
	}
	octets, _ := id[1].([]byte)
	digits, _ := text[1].(string)
	if len(octets) != 16 || len(digits) == 0 {
		p.t.Errorf("get: %v, {get, 62}: %v", id, text)
	}
}

// oldPeers are Scalang, peers that lack a flag of OTP 25, and a peer with only three flags.
var oldPeers = []struct {
	name  string
	flags handshake.Flags
}{
	{"Scalang", scalang},
	{"no UTF8_ATOMS", otp25 &^ handshake.UTF8Atoms},
	{"no BIG_CREATION", otp25 &^ handshake.BigCreation},
	{"no UNLINK_ID", otp25 &^ handshake.UnlinkID},
	{"no SEND_SENDER", otp25 &^ handshake.SendSender},
	{"no ALIAS", otp25 &^ handshake.Alias},
	{"no NEW_FLOATS", otp25 &^ handshake.NewFloats},
	{"no SMALL_ATOM_TAGS", otp25 &^ (handshake.SmallAtomTags | handshake.UTF8Atoms)},
	{"no HANDSHAKE_23", otp25 &^ handshake.Handshake23},
	{"no EXIT_PAYLOAD", otp25 &^ handshake.ExitPayload},
	{"only three flags", handshake.ExtendedReferences | handshake.ExtendedPidsPorts | handshake.DistMonitor},
}

func TestOldPeers(t *testing.T) {
	for _, peer := range oldPeers {
		t.Run(peer.name, func(t *testing.T) {
			n := start(t, Options{Functions: rpc.Table{
				{Module: "test", Function: "float", Arity: 0}: func([]etf.Term) (etf.Term, error) { return 1.5, nil },
			}})
			p := oldDial(t, n, "scala@127.0.0.1", peer.flags)
			testOldCalls(p)
			testOldBulk(p)
			testOldSignals(p)
			for range 2 {
				again := oldDial(t, n, p.name, peer.flags)
				again.get()
				if _, err := io.Copy(io.Discard, p.conn); err != nil {
					t.Errorf("the earlier connection: %v", err)
				}
				p = again
			}
		})
	}
}

func testOldCalls(p *old) {
	p.t.Helper()
	p.wantCall("net_kernel", tuple{atom("is_auth"), atom(p.name)}, "yes")
	p.get()
	p.wantCall("flake", tuple{atom("get"), 63}, "[error badarg]")
	p.wantCall("flake", atom("unknown"), "ok")
	p.wantCall("flake", tuple{p.pid(), p.ref(), []any{}}, "ok")

	apply := func(m, f atom) tuple { return tuple{atom("call"), m, f, []any{}, atom("user")} }
	p.wantCall("rex", apply("erlang", "node"), name)
	p.wantCall("rex", apply("no", "such"), "[badrpc [EXIT [undef [[no such [] []] []]]]]")
	float := "3ff8000000000000"
	if !p.flags.Has(handshake.NewFloats) {
		float = "1.50000000000000000000e+00"
	}
	p.wantCall("rex", apply("test", "float"), float)
	p.send(tuple{6, p.pid(), atom(""), atom("rex")}, tuple{p.pid(), apply("erlang", "node")})
	if got := fmt.Sprint(p.answer()); got != "[rex "+name+"]" {
		p.t.Error(got)
	}
	for range 100 { // casts are not answered
		p.tick()
	}
	p.send(tuple{6, p.pid(), atom(""), atom("nobody")}, atom("message"))
	p.get()
}

// testOldBulk decodes the answers to all calls except get.
func testOldBulk(p *old) {
	p.t.Helper()
	ok := func(request any) any {
		p.t.Helper()
		reply, _ := p.call("flake", request).(tuple)
		if len(reply) != 2 || reply[0] != atom("ok") {
			p.t.Fatalf("%v: %v", request, reply)
		}
		return reply[1]
	}
	for _, n := range []int{1, idserver.MaxInline, idserver.MaxInline + 1} {
		ids, _ := ok(tuple{atom("get_many"), n}).([]any)
		texts, _ := ok(tuple{atom("get_many"), n, 62}).([]any)
		packed, _ := ok(tuple{atom("get_binary"), n}).([]byte)
		if len(ids) != n+1 || len(ids[0].([]byte)) != 16 || len(texts) != n+1 || texts[0] == "" || len(packed) != 16*n {
			p.t.Errorf("%d ids: %v %v %x", n, ids, texts, packed)
		}
		leased := int64(0)
		runs, _ := ok(tuple{atom("lease"), n}).([]any)
		for _, run := range runs[:len(runs)-1] {
			leased += run.(tuple)[1].(int64)
		}
		if leased != int64(n) {
			p.t.Errorf("a lease of %d ids is %v", n, runs)
		}
	}
	octets := []byte("\x00\x00\x01\xa1\xfb\x17\x58\x7b\x7a\x00\x78\xff\xe3\xd4\x00\x00")
	const fields = "[ok [[time 1795213973627] [worker 134142448624596] [sequence 0] []]]"
	p.wantCall("flake", tuple{atom("decompose"), octets}, fields)
	p.wantCall("flake", tuple{atom("decompose"), []byte("1A1FB17587B7A0078FFE3D40000"), 16}, fields)
	p.wantCall("flake", tuple{atom("notional"), 1}, "[ok [0 0 0 0 0 0 0 1 0 0 0 0 0 0 0 0]]")
	p.wantCall("flake", tuple{atom("notional"), 1, 2},
		"[ok [[0 0 0 0 0 0 0 1 0 0 0 0 0 0 0 0] [0 0 0 0 0 0 0 2 255 255 255 255 255 255 255 255]]]")
	p.wantCall("flake", tuple{atom("lease"), 0}, "[error badarg]")
	if text, _ := ok(tuple{atom("get"), atom("canonical")}).(string); len(text) != 22 {
		p.t.Errorf("canonical: %q", text)
	}
	info, _ := p.call("flake", atom("info")).([]any)
	if len(info) < 2 || fmt.Sprint(info[:2]) != "[[format flake] [worker 1]]" {
		p.t.Errorf("info: %v", info)
	}
}

// testOldSignals monitors, links to and kills the server.
func testOldSignals(p *old) {
	p.t.Helper()
	want := func(want tuple) {
		p.t.Helper()
		if got, message := p.recv(); fmt.Sprint(got) != fmt.Sprint(want) || message != nil {
			p.t.Fatalf("got %q %q, want %q", got, message, want)
		}
	}
	nobody, byName, byPid := p.ref(), p.ref(), p.ref()
	p.send(tuple{19, p.pid(), atom("nobody"), nobody})
	want(tuple{21, atom("nobody"), p.pid(), nobody, atom("noproc")})

	whereis := tuple{atom("call"), atom("erlang"), atom("whereis"), []any{atom("flake")}, atom("user")}
	server, _ := p.call("rex", whereis).(identifier)
	p.send(tuple{19, p.pid(), atom("flake"), byName})
	p.send(tuple{20, p.pid(), atom("flake"), byName})
	p.send(tuple{1, p.pid(), server})
	if p.flags.Has(handshake.UnlinkID) {
		p.send(tuple{35, 1, p.pid(), server})
		want(tuple{36, 1, server, p.pid()})
	} else {
		p.send(tuple{4, p.pid(), server})
	}
	p.get()

	p.send(tuple{19, p.pid(), server, byPid})
	p.send(tuple{8, p.pid(), server, atom("kill")})
	want(tuple{21, server, p.pid(), byPid, atom("killed")})
	await(p.t, "the server is back", func() bool { return p.node.registry.named("flake").server != nil })

	server, _ = p.call("rex", whereis).(identifier)
	p.send(tuple{1, p.pid(), server})
	p.send(tuple{8, p.pid(), server, atom("kill")})
	want(tuple{3, server, p.pid(), atom("killed")})
	await(p.t, "the server is back", func() bool { return p.node.registry.named("flake").server != nil })
}

// A tick in answer to a tick is not answered, and keeps the connection alive.
func TestOldPeerTicks(t *testing.T) {
	n := start(t, Options{NetTicktime: 8 * time.Second})
	p := oldDial(t, n, "scala@127.0.0.1", scalang)
	head := make([]byte, 4)
	for range 2 {
		if _, err := io.ReadFull(p.conn, head); err != nil || binary.BigEndian.Uint32(head) != 0 {
			t.Fatalf("%x, %v, want a tick", head, err)
		}
		p.tick()
	}
	p.get()
}
