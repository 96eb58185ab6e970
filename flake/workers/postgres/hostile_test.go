//go:build unix

package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/flake-go/flake/flake/workers"
)

// message returns a message of the protocol.
func message(kind byte, body string) string {
	return string(kind) + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))) + body
}

// row returns a row of an answer.
func row(values ...string) string {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(values)))
	for _, v := range values {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return message('D', string(b))
}

var (
	described = message('T', "\x00\x00")
	info      = described + row("1", "2", "3", "r", "p", "00000001", "7", "off", "on", "8")
)

// Servers that are not PostgreSQL, or try to harm the node, get a bounded time and a bounded memory.
func TestHostile(t *testing.T) {
	const ready = "\x00\x00\x00\x00"
	login := message('R', ready) + message('Z', "I")
	parameters := io.MultiReader(strings.NewReader(message('R', ready)), &repeated{part: message('S', "a\x00b\x00")})
	endless := func(part string) io.Reader { return io.MultiReader(strings.NewReader(login), &repeated{part: part}) }
	text := strings.NewReader
	for name, tt := range map[string]struct {
		answers io.Reader
		want    string // in the error
	}{
		"closes":              {text(""), "closed the connection"},
		"closes after login":  {text(login), "closed the connection"},
		"never answers":       {nil, "no connection in time"},
		"another protocol":    {text("HTTP/1.1 400 Bad Request\r\n\r\n"), "too long"},
		"a huge message":      {text(message('R', ready) + "S\x7f\xff\xff\xff"), "too long"},
		"a huge row":          {text(login + "D\x7f\xff\xff\xff"), "too long"},
		"a negative length":   {text(login + "D\xff\xff\xff\xff"), "invalid message length"},
		"endless parameters":  {parameters, "too long"},
		"endless notices":     {endless(message('N', "SNOTICE\x00VNOTICE\x00C00000\x00Mm\x00\x00")), "too long"},
		"endless rows":        {endless(row("a", "b")), "too long"},
		"endless results":     {endless(described), "too long"},
		"endless warnings":    {endless(message('N', "SWARNING\x00VWARNING\x00C01000\x00Mwoe\x00\x00")), "too long"},
		"no row":              {text(login + message('C', "SELECT 0\x00") + message('Z', "I")), "not PostgreSQL's"},
		"a strange row":       {text(login + described + row("x", "y") + message('Z', "I")), "not PostgreSQL's"},
		"a copy":              {text(login + message('G', "\x00\x00\x00")), "not PostgreSQL's"},
		"a strange tag":       {text(login + info + message('C', "INSERT 0 9\x00") + message('Z', "I")), "INSERT 0 9"},
		"an open transaction": {text(login + info + message('C', "INSERT 0 1\x00") + message('Z', "T")), "not ended"},
		"a warning": {text(login + info + message('N', "SWARNUNG\x00VWARNING\x00C01000\x00Mnot replicated\x00\x00") +
			message('C', "INSERT 0 1\x00") + message('Z', "I")), "not replicated"},
		"an error at the end": {text(login + info + message('C', "INSERT 0 1\x00") +
			message('E', "SERROR\x00C40001\x00Mrolled\x1b[31m back\x00\x00") + message('Z', "I")), `rolled\x1b[31m back`},
		"a long error": {text(message('E', "SFATAL\x00C53300\x00M"+strings.Repeat("long ", 10_000)+"\x00\x00")), "long"},
		"no end":       {text(login + info + message('C', "INSERT 0 1\x00")), "closed the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					if tt.answers == nil {
						defer c.Close()
						continue
					}
					c.Read(make([]byte, 1<<10))
					go io.Copy(io.Discard, c)
					io.Copy(c, tt.answers)
					c.(*net.TCPConn).CloseWrite()
				}
			}()
			limit := patience
			if tt.answers == nil {
				limit = 50 * time.Millisecond
			}
			s := open(t, Config{URL: url(l.Addr().String())})
			ok, err := s.Swap(limited(t, limit), nil, map[string]string{"p/a": "1"})
			if ok || err == nil || errors.Is(err, workers.ErrRefused) || !strings.Contains(err.Error(), tt.want) ||
				len(err.Error()) > 2*shownBytes {
				t.Errorf("%v, %v", ok, err)
			}
		})
	}
}

// Whatever a server answers, a write counts as done only if the answer says that the transaction
// has ended.
func FuzzAnswer(f *testing.F) {
	const done = "INSERT 0 1\x00"
	f.Add([]byte(info + row("a") + message('C', done) + message('Z', "I")))
	f.Add([]byte(info + described + row("key", "value") + message('C', "SELECT 1\x00") + message('Z', "T")))
	f.Add([]byte(message('N', "SWARNING\x00VWARNING\x00C01000\x00Mm\x00\x00") +
		message('E', "SERROR\x00C42501\x00Mm\x00\x00")))
	f.Add([]byte(message('S', "a\x00b\x00") + message('I', "") + message('K', "\x00\x00\x00\x01\x00\x00\x00\x02")))
	f.Fuzz(func(t *testing.T, answers []byte) {
		to := pgproto3.NewFrontend(bytes.NewReader(answers), io.Discard)
		to.SetMaxBodyLen(maxAnswer)
		c := &conn{ctx: t.Context(), to: to}
		_, err := c.ask("SELECT 1")
		if err == nil && !bytes.Contains(answers, []byte(message('Z', "I"))) {
			t.Errorf("%q", answers)
		}
	})
}

// repeated is an endless reader.
type repeated struct{ part string }

func (r *repeated) Read(b []byte) (int, error) {
	return copy(b, bytes.Repeat([]byte(r.part), max(len(b)/len(r.part), 1))), nil
}
