package distribution

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// A frame with an error inside is dropped, and the connection stays open.
func TestIllFormedIsDropped(t *testing.T) {
	atom := external(etf.Atom("x"))
	regSend := etf.Tuple{number(wire.OpRegSend), theirs, etf.Atom(""), etf.Atom("flake")}
	raw := func(b string) []byte { return append([]byte{0, 0, 0, byte(len(b))}, b...) }
	for name, test := range map[string]struct {
		frame []byte
		log   string // the error that is logged, or ""
	}{
		"nothing":                {raw("p"), ""},
		"no version":             {raw("ph\x01a\x01"), ""},
		"version alone":          {raw("p\x83"), ""},
		"not a tuple":            {frame(etf.Atom("x")), "not a tuple"},
		"empty tuple":            {frame(etf.Tuple{}), ""},
		"operation an atom":      {frame(etf.Tuple{etf.Atom("x")}), ""},
		"many, not one a number": {frame(slices.Repeat(etf.Tuple{etf.Atom("x")}, 14)), "not an integer"},
		"unknown":                {frame(etf.Tuple{int64(99)}), "unknown control message 99"},
		"one beyond the last":    {frame(etf.Tuple{int64(len(operations))}), ""},
		"below zero":             {frame(etf.Tuple{int64(-1)}), ""},
		"not used":               {frame(etf.Tuple{number(wire.OpNodeLink)}), ""},
		"not offered":            {frame(etf.Tuple{number(wire.OpPayloadExit), theirs, ours}, atom), ""},
		"beyond 63 bits":         {raw("p\x83h\x01n\x09\x00123456789"), ""},
		"count beyond the end":   {raw("p\x83i\xff\xff\xff\xffa\x01"), ""},
		"no elements":            {raw("p\x83h\x00a0"), "has 0 elements: must have 1 to 7"}, // {} followed by an operation
		"too many elements": {frame(append(regSend, ours, ours, ours, ours), atom),
			"message 6 has 8 elements: must have 1 to 7"},
		"one too many":        {frame(append(regSend, etf.Atom("x")), atom), "message 6 has 5 elements: must have 4"},
		"one too few":         {frame(regSend[:3], atom), ""},
		"no message":          {frame(regSend), ""},
		"message cut":         {cut(frame(regSend, external(etf.String("abc")))), ""},
		"message unknown":     {frame(regSend, []byte{200, 1, 2}), ""},
		"message compressed":  {frame(regSend, []byte{byte(etf.CompressedExt), 0, 0, 0, 1, 0}), ""},
		"message twice":       {frame(regSend, atom, atom), ""},
		"item an integer":     {frame(etf.Tuple{number(wire.OpMonitorP), theirs, int64(1), ref3}), ""},
		"link to a reference": {frame(etf.Tuple{number(wire.OpLink), theirs, ref3}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				// The arguments of the first frame must not be used again.
				r.send(frame(regSend, atom), test.frame, monitorP(gone, ref3))
				r.want(down(gone, ref3, "noproc"))
				r.logged("message dropped")
				r.logged(test.log)
				if got, want := r.local.flake.take(), fmt.Sprintf("%x\n", atom); got != want {
					t.Errorf("flake received %s, want only the first message", got)
				}
			})
		})
	}
}

// cut shortens a frame by its last byte.
func cut(b []byte) []byte {
	b = bytes.Clone(b[:len(b)-1])
	b[3]--
	return b
}

// Some signals are dropped silently: those to processes that do not exist; answers to monitors,
// aliases and links, because our processes use none of these; and changes of the group leader.
func TestIgnored(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		why := etf.Atom("why")
		r.log.take()
		r.send(
			frame(etf.Tuple{number(wire.OpAliasSend), theirs, ref3}, old),
			frame(etf.Tuple{number(wire.OpAliasSendTT), theirs, ref5, traceToken}, old),
			frame(etf.Tuple{number(wire.OpMonitorPExit), theirs, ours, ref3, why}),
			frame(etf.Tuple{number(wire.OpMonitorPExit), ours, ours, ref3, why}),
			frame(etf.Tuple{number(wire.OpExit), ours, ours, why}),
			frame(etf.Tuple{number(wire.OpExitTT), ours, ours, etf.Atom("token"), why}),
			frame(etf.Tuple{number(wire.OpGroupLeader), theirs, ours}),
			frame(etf.Tuple{number(wire.OpUnlinkIDAck), int64(1), theirs, ours}),
			frame(etf.Tuple{number(wire.OpRegSend), theirs, etf.Atom(""), etf.Atom("nobody")}, external(etf.Atom("x"))),
			frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), gone}, external(etf.Atom("x"))),
			frame(etf.Tuple{number(wire.OpExit2), theirs, gone, etf.Atom("kill")}),
			frame(etf.Tuple{number(wire.OpExit), theirs, gone, etf.Atom("kill")}),
		)
		r.want()
		if got := r.local.flake.take() + r.log.take(); got != "" {
			t.Errorf("received or logged %s, want nothing", got)
		}
	})
}

// fitting holds a term for each letter of operation.args.
var fitting = map[byte]etf.Term{
	'p': ours, 'r': ref5, 'a': etf.Atom("flake"), 'n': etf.Atom("flake"), 'i': int64(1), '.': etf.List{},
}

// A control message with an element of the wrong kind is dropped.
func TestArguments(t *testing.T) {
	fits := map[byte]string{'p': "p", 'r': "r", 'a': "a", 'n': "ap", 'i': "i", '.': "prai."}
	for o, known := range operations {
		for i, letter := range []byte(known.args) {
			for other, term := range fitting {
				if other == 'n' || strings.IndexByte(fits[letter], other) >= 0 {
					continue
				}
				control := etf.Tuple{number(wire.Op(o))}
				for _, letter := range []byte(known.args) {
					control = append(control, fitting[letter])
				}
				control[1+i] = term
				bubble(t, flags, func(t *testing.T, r *rig) {
					if known.message {
						r.send(frame(control, old))
					} else {
						r.send(frame(control))
					}
					r.logged(fmt.Sprintf("control message %d: element %d is a %s", o, i+2, etf.Tag(external(term)[0])))
					r.want()
				})
			}
		}
	}
}

// seeds returns control messages of every kind, without the length and the pass-through byte.
func seeds() (all [][]byte) {
	atom := external(etf.Atom("x"))
	for o := range wire.Op(len(operations)) {
		known := operations[o]
		if known.receive == nil {
			continue
		}
		control := etf.Tuple{number(o)}
		for _, letter := range []byte(known.args) {
			control = append(control, fitting[letter])
		}
		if known.message {
			all = append(all, frame(control, atom)[5:])
		} else {
			all = append(all, frame(control)[5:])
		}
	}
	return append(all,
		monitorP(etf.Atom("flake"), ref3)[5:],
		[]byte("\x83h\x00a0"), // {} followed by an operation
		monitorP(oursOld, oldRef(there, 1))[5:],
		frame(etf.Tuple{number(wire.OpExit2), theirs, ours, etf.Atom("kill")})[5:],
	)
}

// FuzzHandle checks that a frame ends a connection only if its first byte is wrong, and that
// answers are well-formed.
func FuzzHandle(f *testing.F) {
	for _, s := range seeds() {
		f.Add(append([]byte{wire.PassThrough}, s...))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, src []byte) {
		c := quiet()
		if err := c.handle(src); (err != nil) != (len(src) > 0 && src[0] != wire.PassThrough) {
			t.Errorf("%x: %v", src, err)
		}
		out := newFrames(bytes.NewReader(c.out.buf), newMemory(new(pool)))
		for out.fill() == nil {
			for {
				frame, ok, err := out.next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				var m wire.Message
				if err := m.Decode(frame[1:]); err != nil {
					t.Errorf("%x is answered with %x: %v", src, frame, err)
				}
			}
		}
	})
}
