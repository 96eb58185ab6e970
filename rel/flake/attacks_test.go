package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
)

// The attacks that take more than one line of code.

// forgedLengths claims the largest possible length for every tag.
func (a *attacker) forgedLengths() {
	for tag := range 256 {
		for _, rest := range [][]byte{
			{}, {0xff}, {0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff}, {0, 0xff, 0xff, 0xff},
			bytes.Repeat([]byte{0xff}, 40), make([]byte, 40), append(make([]byte, 8), bytes.Repeat([]byte{0x7f}, 40)...),
		} {
			a.everywhere(append([]byte{byte(tag)}, rest...))
		}
	}
}

func (a *attacker) nested() {
	const deep = 200_000
	for _, around := range []struct{ before, after string }{
		{"\x68\x01", ""},                           // {Term}
		{"\x6c\x00\x00\x00\x01", "\x6a"},           // [Term]
		{"\x6c\x00\x00\x00\x01\x6a", ""},           // [[] | Term]
		{"\x74\x00\x00\x00\x01\x6a", ""},           // #{[] => Term}
		{"\x74\x00\x00\x00\x01", "\x6a"},           // #{Term => []}
		{"\x69\x00\x00\x00\x02\x6a", ""},           // {[], Term}
		{"\x68\x02\x6c\x00\x00\x00\x01", "\x6aaa"}, // {[Term], 97}
	} {
		a.everywhere([]byte(strings.Repeat(around.before, deep) + "\x6a" + strings.Repeat(around.after, deep)))
	}
}

// bomb is a large compressed term.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write(external(make([]byte, 8<<20)))
	z.Close()
	return b.Bytes()
})

func (a *attacker) compressed() {
	for _, size := range []uint32{8<<20 + 5, 0x7fffffff, 0xffffffff, 0} {
		a.everywhere(append(binary.BigEndian.AppendUint32([]byte{80}, size), bomb()...))
	}
}

// monitors sets the largest possible monitors, and never removes one.
func (a *attacker) monitors() {
	long := etf.Atom(strings.Repeat("x", 250) + "@y")
	a.numbered(100_000, func(i int) {
		from := a.self
		if a.i%2 == 1 {
			from = etf.NewPid(long, uint32(i), 0, 1)
		}
		a.frame(a.control(19, from, etf.Atom("flake"), a.ref(i)))
	})
	a.flush()
}

func (a *attacker) links() {
	long := etf.Atom(strings.Repeat("x", 250) + "@y")
	a.numbered(100_000, func(i int) {
		from := etf.NewPid(a.self.Node(), uint32(i), 0, 1)
		if a.i%2 == 1 {
			from = etf.NewPid(long, uint32(i), 0, 1)
		}
		a.frame(a.control(1, from, a.flake))
	})
	a.flush()
}

func (a *attacker) atoms() {
	for i := range 20_000 {
		name := etf.Atom(strings.Repeat("x", 240) + a.ref(i).String())[:250]
		a.regSend(name, name)
		a.frame(a.control(19, a.self, name, a.ref(i)))
		a.regSend("flake", etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{a.self, a.ref(i)}, name})
		a.spawn(i, name, name, external(etf.List{name}))
	}
	a.flush()
}

func (a *attacker) noise() {
	for range 1000 {
		a.frame(a.bytes(1000))
	}
	a.flush()
	a.write(a.bytes(1000)) // most likely the start of a frame that is too long
}

func (a *attacker) headers() {
	for _, frame := range [][]byte{
		{131, 68, 0}, {131, 68, 255, 255, 255}, {131, 69, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {131, 70}, {0},
	} {
		a.announce(len(frame))
		a.write(frame)
	}
}

// spawns asks for the largest possible answers, and reads none.
func (a *attacker) spawns() {
	for i := range 200 {
		a.spawn(i, "flake_harness", "generate", external(etf.List{int64(100_000)}))
		a.spawn(i, "flake_harness", "generate", external(etf.List{int64(20_000), int64(2)}))
		a.spawn(i, "net_adm", "ping", external(etf.List{etf.Atom("nobody@127.0.0.1")}))
	}
	a.flush()
}

// largeArguments sends arguments that would be sent back in the stack of the exception.
func (a *attacker) largeArguments() {
	for _, size := range []int{10 << 20, 1 << 20} {
		args := external(etf.List{make([]byte, size)})
		for i := range 4 {
			a.spawn(i, "no_such_module", "f", args)
			a.rex("no_such_module", "f", args)
			a.flush()
		}
	}
}

// largeEchoes sends large terms in the other places from which the node sends terms back unchanged.
func (a *attacker) largeEchoes() {
	large := make([]byte, 10<<20)
	call := external(etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{a.self, large}, etf.Atom("get")})
	var controls [][]byte
	for _, c := range []etf.Tuple{
		{int64(1), a.self, a.flake},
		{int64(3), a.self, a.flake, large},
		{int64(8), a.self, a.flake, large},
		{int64(19), a.self, etf.Atom("nobody"), large},
		{int64(35), large, a.self, a.flake},
	} {
		controls = append(controls, external(c))
	}
	for i := range 4 {
		a.regSendRaw("flake", call)
		for _, c := range controls {
			a.frame(c)
		}
		a.frame(a.control(19, a.self, etf.Atom("flake"), etf.Tuple{int64(i), large}))
		a.flush()
	}
}

// manyElements makes the node allocate as much memory as possible for few bytes.
func (a *attacker) manyElements() {
	const most = etf.MaxElements
	for i := range 50 {
		args := etf.AppendListHeader(nil, most-10)
		args = append(args, bytes.Repeat([]byte{104, 0}, most-10)...)
		a.spawn(i, "no_such_module", "f", etf.AppendNil(args))
		a.flush()
	}
}

func (a *attacker) largeCalls() {
	a.everywhere(external(make([]byte, 10<<20)))
	a.everywhere(append(append(etf.AppendListHeader(nil, 1<<20), bytes.Repeat([]byte{104, 0}, 1<<20)...), 106))
}

func (a *attacker) deaf() {
	calls := a.repeated(func(i int) {
		a.ask(a.self, i, etf.Tuple{etf.Atom("get"), int64(2)})
		a.regSend("rex", etf.Tuple{a.self, etf.Tuple{
			etf.Atom("call"), etf.Atom("flake_harness"), etf.Atom("generate"), etf.List{int64(100_000)}, etf.Atom("user"),
		}})
	})
	for i := 0; a.failed == nil; {
		i += calls(i, batch)
	}
}

// bulk returns a function that makes the calls with the largest replies, each for as many ids as it can return, n
// times.
func (a *attacker) bulk() (call func(n int)) {
	calls := a.repeated(func(i int) {
		for _, request := range []etf.Term{
			etf.Tuple{etf.Atom("get_many"), int64(idserver.MaxMany), int64(2)},
			etf.Tuple{etf.Atom("get_binary"), int64(idserver.MaxMany)},
			etf.Tuple{etf.Atom("lease"), int64(idserver.MaxLease)},
		} {
			a.ask(a.self, i, request)
		}
	})
	i := 0
	return func(n int) {
		for end := i + n; i < end && a.failed == nil; {
			i += calls(i, end-i)
		}
	}
}

// notRead makes large calls as long as the node reads them, and reads no answer.
func (a *attacker) notRead() {
	for call := a.bulk(); a.failed == nil; {
		call(batch)
	}
}

// reading asks for many ids, and reads the answers.
func (a *attacker) reading() {
	a.bulk()(10)
	a.SetReadDeadline(time.Now().Add(attackTime))
	io.Copy(io.Discard, a)
}

// longest requests ids in their longest text form, with several calls at a time, and reads the
// replies.
func (a *attacker) longest() {
	request := etf.Tuple{etf.Atom("get_many"), int64(idserver.MaxInline), int64(2)}
	message := etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{a.self, a.ref(0)}, request}
	for end := time.Now().Add(attackTime); a.failed == nil && time.Now().Before(end); {
		const calls = 8
		for range calls {
			a.regSend("flake", message)
		}
		a.flush()
		a.SetReadDeadline(time.Now().Add(patience))
		for i := 0; i < calls && a.failed == nil; i++ {
			a.readFrame()
		}
	}
}

func (a *attacker) readFrame() {
	size := make([]byte, 4)
	if _, a.failed = io.ReadFull(a, size); a.failed == nil {
		_, a.failed = io.CopyN(io.Discard, a, int64(binary.BigEndian.Uint32(size)))
	}
}

// kills sends exit(Pid, kill) to every named process, and to guessed pids.
func (a *attacker) kills() {
	names := []etf.Atom{"flake", "flake_sup", "net_kernel", "kernel_sup", "rex", "persistent_timer"}
	for range 20 {
		for _, name := range names {
			a.frame(a.control(8, a.self, name, etf.Atom("kill")))
			if pid, ok := a.lookup(name); ok {
				a.frame(a.control(8, a.self, pid, etf.Atom("kill")))
				a.frame(a.control(3, a.self, pid, etf.Atom("kill")))
			}
		}
	}
	for range 1000 {
		for _, name := range names {
			a.frame(a.control(8, a.self, name, etf.Atom("kill")))
		}
	}
	if flake, ok := a.whereis("flake"); ok {
		for id := range uint32(2000) {
			a.frame(a.control(8, a.self, etf.NewPid(nodeName, id, 0, flake.Creation()), etf.Atom("kill")))
		}
	}
	a.flush()
}
