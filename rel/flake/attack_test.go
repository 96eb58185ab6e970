package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

// An attack runs on several connections at the same time.
type attack struct {
	name  string
	conns int
	run   func(a *attacker)
}

// attacker is a hostile peer. Its writes may fail: the node may rightly have hung up.
type attacker struct {
	net.Conn
	i      int // its index among the attackers
	node   *flakeNode
	self   etf.Pid
	flake  etf.Pid // the server's; set only if the attacker has the cookie
	random *rand.Rand
	out    []byte
	failed error
}

// attackTime limits how long an attacker waits for the node to read or to answer, and how long the
// attack named longest lasts.
const attackTime = 3 * time.Second

// withCookie are the attacks of a peer after its handshake.
var withCookie = []attack{
	{"forged lengths", 1, (*attacker).forgedLengths},
	{"200,000 nested terms", 2, (*attacker).nested},
	{"compressed terms", 2, (*attacker).compressed},
	{"2 GB announced", 20, func(a *attacker) { a.write([]byte{0x7f, 0xff, 0xff, 0xff}); a.write(make([]byte, 1<<20)) }},
	{"large frames that do not end", 20,
		func(a *attacker) { a.announce(distribution.MaxFrame); a.write(make([]byte, distribution.MaxFrame-1)) }},
	{"frames that do not end", 300, func(a *attacker) { a.announce(64<<10 - 4); a.write(make([]byte, 60<<10)) }},
	{"100,000 monitors", 4, (*attacker).monitors},
	{"100,000 links", 4, (*attacker).links},
	{"20,000 atoms", 2, (*attacker).atoms},
	{"noise", 20, (*attacker).noise},
	{"distribution headers", 2, (*attacker).headers},
	{"a second handshake", 2, func(a *attacker) { a.write(nameMessage("again@127.0.0.1")) }},
	{"spawn requests", 10, (*attacker).spawns},
	{"large arguments", 5, (*attacker).largeArguments},
	{"large echoes", 5, (*attacker).largeEchoes},
	{"many elements", 10, (*attacker).manyElements},
	{"large calls", 5, (*attacker).largeCalls},
	{"answers not read", 20, (*attacker).deaf},
	{"large answers not read", 20, (*attacker).notRead},
	{"large answers", 20, (*attacker).reading},
	{"large answers of ordinary calls", 1000, (*attacker).longest},
	{"kills", 4, (*attacker).kills},
	{"many frames that do not end", 2000, func(a *attacker) { a.announce(64<<10 - 4); a.write(make([]byte, 60<<10)) }},
	{"monitors and links on many connections", 1500, (*attacker).watches},
	{"monitors and links set and removed", 20, (*attacker).setAndRemoved},
	{"some answers not read", 1000, (*attacker).unread},
	{"bursts", 1000, (*attacker).burst},
	{"functions that do not end", 300, (*attacker).pings},
}

// withoutCookie are the attacks of a peer without the cookie.
var withoutCookie = []attack{
	{"noise", 200, func(a *attacker) { a.write(a.bytes(1000)) }},
	{"long names", 200,
		func(a *attacker) { a.write([]byte{0xff, 0xff}); a.write(nameMessage(strings.Repeat("x", 60000))) }},
	{"4-byte lengths", 200, func(a *attacker) { a.write([]byte{0x7f, 0xff, 0xff, 0xff}); a.write(make([]byte, 1<<16)) }},
	{"half of a name message", 500,
		func(a *attacker) { a.write(nameMessage(fmt.Sprintf("half%d@127.0.0.1", a.i))[:a.random.IntN(20)]) }},
	{"only a name message", 500, func(a *attacker) { a.write(nameMessage(fmt.Sprintf("half%d@127.0.0.1", a.i))) }},
	{"frames for a name", 50, func(a *attacker) { a.regSend("flake", etf.Atom("x")); a.flush() }},
	{"a reply for a name", 50, func(a *attacker) { a.write(framed(handshake.Reply{Challenge: 1}.Append(nil))) }},
	{"wrong cookies", 100, func(a *attacker) {
		handshake.Start(a, nodeName,
			handshake.Options{Node: fmt.Sprintf("guess%d@127.0.0.1", a.i), Creation: 1, Cookie: "guess"})
	}},
}

// framed prepends the length of a handshake message.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}

func nameMessage(node string) []byte {
	return framed(handshake.Name{Version: 6, Flags: handshake.Offered, Creation: 1, Node: node}.Append(nil))
}

func (a *attacker) write(b []byte) {
	if a.failed == nil {
		a.SetWriteDeadline(time.Now().Add(attackTime))
		_, a.failed = a.Write(b)
	}
}

func (a *attacker) flush() {
	a.write(a.out)
	a.out = a.out[:0]
}

func (a *attacker) bytes(limit int) []byte {
	size := a.random.IntN(limit)
	b := make([]byte, 0, size+7)
	for len(b) < size {
		b = binary.NativeEndian.AppendUint64(b, a.random.Uint64())
	}
	return b[:size]
}

func (a *attacker) announce(size int) { a.write(binary.BigEndian.AppendUint32(nil, uint32(size))) }

// frame appends a frame of terms to what flush writes, or writes them if they are large.
func (a *attacker) frame(terms ...[]byte) {
	start, size := len(a.out), len(terms)-1
	for _, t := range terms {
		size += len(t)
	}
	a.out = wire.Open(a.out)
	binary.BigEndian.PutUint32(a.out[start:], uint32(len(a.out)-start-wire.HeaderSize+size))
	for i, t := range terms {
		if i > 0 {
			a.out = append(a.out, etf.VersionMagic)
		}
		if len(t) > batch {
			a.flush()
			a.write(t)
			continue
		}
		if a.out = append(a.out, t...); len(a.out) > batch {
			a.flush()
		}
	}
}

// batch is how many bytes attackers collect before they write.
const batch = 64 << 10

// numbered writes what send would write for each number below n.
func (a *attacker) numbered(n int, send func(i int)) {
	repeated := a.repeated(send)
	for i := 0; i < n && a.failed == nil; {
		i += repeated(i, n-i)
	}
}

// repeated returns a function that writes what send would write for some numbers from first on, at most n, and
// returns how many. Since send is slow, repeated calls it only once, with a sample number. The function replaces the
// sample wherever it appears as 32 bits.
func (a *attacker) repeated(send func(i int)) (write func(first, n int) int) {
	const sample = 0x5eedf00d
	a.flush()
	send(sample)
	one := bytes.Clone(a.out)
	a.out = a.out[:0]
	var places []int // of the sample
	for at := 0; ; at += 4 {
		i := bytes.Index(one[at:], binary.BigEndian.AppendUint32(nil, sample))
		if i < 0 {
			break
		}
		at += i
		places = append(places, at)
	}
	many := bytes.Repeat(one, 1+batch/len(one))
	return func(first, n int) int {
		n = min(n, len(many)/len(one))
		for i := range n {
			for _, at := range places {
				binary.BigEndian.PutUint32(many[i*len(one)+at:], uint32(first+i))
			}
		}
		a.write(many[:n*len(one)])
		return n
	}
}

func (a *attacker) control(op int64, args ...etf.Term) []byte {
	return external(append(etf.Tuple{op}, args...))
}

func (a *attacker) regSend(name etf.Atom, message etf.Term) { a.regSendRaw(name, external(message)) }

func (a *attacker) regSendRaw(name etf.Atom, message []byte) {
	a.frame(a.control(6, a.self, etf.Atom(""), name), message)
}

func (a *attacker) ref(i int) etf.Ref { return etf.NewRef(a.self.Node(), 1, uint32(i), 2, 3) }

// spawn requests a call of a function as erpc does. args is an encoded list.
func (a *attacker) spawn(i int, module, function etf.Atom, args []byte) {
	mfa := etf.Tuple{etf.Atom("erpc"), etf.Atom("execute_call"), int64(4)}
	message := etf.AppendListHeader(nil, 4)
	for _, t := range []etf.Term{a.ref(i), module, function} {
		message = append(message, external(t)...)
	}
	message = etf.AppendNil(append(message, args...))
	a.frame(a.control(29, a.ref(i), a.self, a.self, mfa, etf.List{etf.Atom("monitor")}), message)
}

// call returns the message of a gen_server:call with an encoded request.
func (a *attacker) call(request []byte) []byte {
	b := append(etf.AppendTupleHeader(nil, 3), external(etf.Atom("$gen_call"))...)
	b = append(b, external(etf.Tuple{a.self, a.ref(1)})...)
	return append(b, request...)
}

// rex asks the server rex to call a function. args is an encoded list.
func (a *attacker) rex(module, function etf.Atom, args []byte) {
	b := etf.AppendTupleHeader(nil, 5)
	for _, t := range []etf.Atom{"call", module, function} {
		b = append(b, external(t)...)
	}
	b = append(append(b, args...), external(etf.Atom("user"))...)
	a.regSendRaw("rex", a.call(b))
}

func external(t etf.Term) []byte {
	b, err := etf.Append(nil, t, etf.AllCaps)
	if err != nil {
		panic(err)
	}
	return b
}

// everywhere sends a term to every place where terms are decoded.
func (a *attacker) everywhere(term []byte) {
	a.frame(term)
	a.frame(append(etf.AppendTupleHeader(nil, 2), term...))
	a.frame(a.control(22, a.self, a.self), term)
	a.regSendRaw("flake", term)
	a.regSendRaw("flake", a.call(term))
	a.regSendRaw("flake", a.call(append(append(etf.AppendTupleHeader(nil, 2), external(etf.Atom("get"))...), term...)))
	a.regSendRaw("net_kernel", a.call(term))
	a.rex("erlang", "whereis", term)
	a.spawn(1, "flake_server", "id", etf.AppendNil(append(etf.AppendListHeader(nil, 1), term...)))
	a.flush()
}
