package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/iderl"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// line is a frame of a conversation, with its length.
type line struct {
	caller bool // whether the caller sent it
	bytes  []byte
}

// sequence returns the ids of a list, and then fails.
type sequence struct {
	formats.Source
	ids []flake.ID
}

func (s *sequence) Reserve(context.Context, int, uint8) (formats.Run, error) {
	if len(s.ids) == 0 {
		return formats.Run{}, errors.New("asked too often")
	}
	id := s.ids[0]
	s.ids = s.ids[1:]
	return formats.Run{First: formats.Number{Hi: binary.BigEndian.Uint64(id[:]), Lo: binary.BigEndian.Uint64(id[8:])},
		Count: 1}, nil
}

// Recorded callers receive the same frames as from the original, except for the differences
// that reduced removes.
func TestRecordedCallers(t *testing.T) {
	for _, file := range []string{"otp25.txt", "otp27.txt", "otp29.txt"} {
		t.Run(file, func(t *testing.T) {
			lines := conversation(t, file)
			var c handshake.Challenge
			if err := c.Decode(lines[2].bytes[2:]); err != nil {
				t.Fatal(err)
			}
			ids := &sequence{generator(t), idsIn(t, lines[5:])}
			n := start(t, Options{Name: c.Node, Supervisors: flakeSup(ids)})
			n.handshake.Load().Creation = c.Creation
			n.handshake.Load().Rand = bytes.NewReader(binary.BigEndian.AppendUint32(nil, c.Challenge))
			c.Flags = handshake.Offered // the only difference from the recorded challenge
			copy(lines[2].bytes[2:], c.Append(nil))

			conn, caller := net.Pipe()
			defer caller.Close()
			applicant, _ := n.gate.arrive(conn)
			go n.greet(applicant)
			caller.SetDeadline(time.Now().Add(patience))
			var said []byte // bytes since the server's last frame
			for i, l := range lines {
				if l.caller {
					said = append(said, l.bytes...)
					continue
				}
				if len(said) > 0 {
					go caller.Write(said) // an answer may be sent before all bytes are read
				}
				said = nil
				lengthSize := 4
				if i < 5 {
					lengthSize = 2
				}
				got := readFrame(t, caller, lengthSize)
				if i < 5 {
					if !bytes.Equal(got, l.bytes) {
						t.Errorf("handshake: %x, want %x", got, l.bytes)
					}
				} else if got, want := reduced(t, got), reduced(t, l.bytes); got != want {
					t.Errorf("frame %d: %s, want %s", i, got, want)
				}
			}
			if len(ids.ids) > 0 {
				t.Errorf("%d ids were not requested", len(ids.ids))
			}
		})
	}
}

// readFrame reads a frame and returns it with its length.
func readFrame(t *testing.T, r io.Reader, lengthSize int) []byte {
	t.Helper()
	b := make([]byte, lengthSize)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range b {
		n = n<<8 | int(c)
	}
	b = append(b, make([]byte, n)...)
	if _, err := io.ReadFull(r, b[lengthSize:]); err != nil {
		t.Fatal(err)
	}
	return b
}

// split returns the elements of the control message of a frame, and the message.
func split(t *testing.T, frame []byte) (op int64, args [][]byte, message []byte) {
	t.Helper()
	if frame[4] != 112 {
		t.Fatalf("not a pass-through: %x", frame)
	}
	r := etf.NewReader(frame[5:])
	r.Version()
	n := r.Tuple()
	op = r.Int()
	for range n - 1 {
		args = append(args, r.Raw())
	}
	if len(r.Rest()) > 0 {
		r.Version()
		message = r.Raw()
	}
	if err := r.Finish(); err != nil {
		t.Fatalf("%x: %v", frame, err)
	}
	return op, args, message
}

// reduced returns the parts of a server's frame that must be the same:
//
//	SEND_SENDER {22, From, To}     as an ALIAS_SEND to the alias in the message's tag: OTP's
//	                               net_kernel replies to the pid instead
//	ALIAS_SEND {33, From, Alias}   without From
//	PAYLOAD_MONITOR_P_EXIT (28)    as a MONITOR_P_EXIT (21): we do not offer EXIT_PAYLOAD
//
// All other parts are compared byte by byte.
func reduced(t *testing.T, frame []byte) string {
	t.Helper()
	op, args, message := split(t, frame)
	switch op {
	case 22:
		tag := etf.NewReader(message)
		tag.Tuple()
		tag.ListHeader()
		tag.Atom()
		return fmt.Sprintf("33 to %x: %x", tag.Ref(), message)
	case 33:
		return fmt.Sprintf("33 to %x: %x", args[1], message)
	case 28:
		op, args, message = 21, append(args, message), nil
	}
	return fmt.Sprintf("%d %x: %x", op, args, message)
}

// idsIn returns the two ids in the original's frames.
func idsIn(t *testing.T, lines []line) (ids []flake.ID) {
	t.Helper()
	for _, l := range lines {
		if l.caller {
			continue
		}
		_, _, message := split(t, l.bytes)
		term, err := etf.Decode(message)
		if err != nil {
			t.Fatal(err)
		}
		reply, ok := term.(etf.Tuple)
		if !ok || len(reply) != 2 {
			continue
		}
		if ok, _ := reply[1].(etf.Tuple); len(ok) == 2 {
			switch id := ok[1].(type) {
			case []byte:
				ids = append(ids, flake.ID(id))
			case etf.String:
				parsed, err := flake.ParseBase(string(id), 62)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, parsed)
			}
		}
	}
	if len(ids) != 2 {
		t.Fatalf("found ids %v, want two", ids)
	}
	return ids
}

// The plain conversations contain all messages of the recorded ones, except the call by rpc.
func TestPlainConversations(t *testing.T) {
	for _, file := range []string{"otp25.txt", "otp27.txt", "otp29.txt"} {
		var ops []int64
		lines := conversation(t, file)
		for _, l := range lines[5:] {
			op, _, _ := split(t, l.bytes)
			ops = append(ops, op)
		}
		want := []int64{19, 6, 22, 20, 19, 6, 33, 20, 19, 6, 33, 20, 19, 6, 33, 20, 6, 6, 19, 6, 28}
		if !slices.Equal(ops, want) {
			t.Errorf("%s: operations %d, want %d", file, ops, want)
		}
	}
}

// flakeSup returns the supervisor of the server flake.
func flakeSup(ids formats.Source) []Supervisor {
	return []Supervisor{{Name: "flake_sup", Children: []Child{
		{Name: "flake", Handler: &iderl.Handler{Server: &idserver.Server{IDs: ids}, Log: quiet}},
	}}}
}
