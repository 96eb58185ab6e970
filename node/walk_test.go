package node

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/iderl"
)

// watched is the server flake. It records everything that it receives and sends.
type watched struct {
	*iderl.Handler
	steps []string
}

func (w *watched) HandleCall(c genserver.Call) {
	w.steps = append(w.steps, fmt.Sprintf("5 call %q", c.Request))
	c.Caller = watchedCaller{c.Caller, w}
	w.Handler.HandleCall(c)
}

// watchedCaller records the reply.
type watchedCaller struct {
	genserver.Caller
	w *watched
}

func (c watchedCaller) Send(pid, alias, message []byte) {
	c.w.steps = append(c.w.steps, fmt.Sprintf("7 answer %q", message))
	c.Caller.Send(pid, alias, message)
}

// watchedIDs is the source of the id.
type watchedIDs struct {
	formats.Source
	w *watched
}

func (i watchedIDs) Reserve(_ context.Context, n int, _ uint8) (formats.Run, error) {
	i.w.steps = append(i.w.steps, "6 id")
	return formats.Run{First: formats.Number{Hi: 1, Lo: 2<<16 | 3}, Count: n}, nil
}

// TestWalk follows one call through the steps of the package's documentation.
func TestWalk(t *testing.T) {
	w := new(watched)
	w.Handler = &iderl.Handler{Server: &idserver.Server{IDs: watchedIDs{generator(t), w}}, Log: quiet}
	n := start(t, Options{Supervisors: []Supervisor{{Name: "flake_sup", Children: []Child{{Name: "flake", Handler: w}}}}})
	creation := string(binary.BigEndian.AppendUint32(nil, n.creation))

	// 1 socket: a stream of bytes to the address that the node listens on.
	c := dialRaw(t, n)
	say := func(s string) {
		t.Helper()
		if _, err := io.WriteString(c, s); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(step string, n int) string {
		t.Helper()
		b := make([]byte, n)
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		return string(b)
	}
	expect := func(step, want string) {
		t.Helper()
		if got := hear(step, len(want)); got != want {
			t.Fatalf("%s: %q, want %q", step, got, want)
		}
	}

	// 2 peer: names, and proofs of the cookie.
	say("\x00\x1bN" + "\x00\x00\x00\x0d\x07\xdf\x7f\xbc" + "\x00\x00\x00\x4d" + "\x00\x0ccl@127.0.0.1")
	expect("2 status", "\x00\x03sok")
	expect("2 challenge, flags", "\x00\x22N"+"\x00\x00\x00\x0d\x07\x17\x4f\xbc")
	challenge := hear("2 challenge", 4)
	expect("2 challenge, creation and name", creation+"\x00\x0fflake@127.0.0.1")
	digest := func(challenge string) string {
		b := md5.Sum(fmt.Appendf([]byte(cookie), "%d", binary.BigEndian.Uint32([]byte(challenge))))
		return string(b[:])
	}
	say("\x00\x15r" + "\x00\x00\x00\x2a" + digest(challenge))
	expect("2 ack", "\x00\x11a"+digest("\x00\x00\x00\x2a"))

	// 3 frame, 4 message: a monitor, a call and the monitor's removal, as
	// gen_server:call sends them.
	const (
		pid   = "Xw\x0ccl@127.0.0.1\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x4d"
		ref   = "Z\x00\x03w\x0ccl@127.0.0.1\x00\x00\x00\x4d\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"
		tag   = "l\x00\x00\x00\x01w\x05alias" + ref
		flake = "w\x05flake"
	)
	frame := func(s string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s
	}
	say(frame("p\x83h\x04a\x13" + pid + flake + ref))
	say(frame("p\x83h\x04a\x06" + pid + "w\x00" + flake + "\x83h\x03w\x09$gen_callh\x02" + pid + tag + "w\x03get"))
	say(frame("p\x83h\x04a\x14" + pid + flake + ref))

	// 8 socket: one frame, to the alias of the caller.
	self := "Xw\x0fflake@127.0.0.1\x00\x00\x00\x01\x00\x00\x00\x00" + creation
	reply := "h\x02w\x02okm\x00\x00\x00\x10" + "\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x02" + "\x00\x03"
	expect("8 answer", frame("p\x83h\x03a\x21"+self+ref+"\x83h\x02"+tag+reply))

	want := []string{
		`5 call "w\x03get"`,
		"6 id",
		fmt.Sprintf("7 answer %q", "h\x02"+tag+reply),
	}
	if got := strings.Join(w.steps, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
