package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/tlslimit"
)

// beforeTLS are attacks without a TLS handshake on a node that speaks TLS.
var beforeTLS = []attack{
	{"long handshakes", 1000, func(a *attacker) {
		a.write(longHello())
		a.awaitEnd()
	}},
	{"handshakes that do not end", 1000, func(a *attacker) {
		a.write(endlessHello())
		a.awaitEnd()
	}},
}

// What all attackers send before TLS.
var (
	longHello = sync.OnceValue(func() []byte {
		record := append([]byte{typeHandshake, 3, 1, 0x40, 0}, make([]byte, 16000)...)
		return append(helloRecords(maxHello+3, 16<<10), record...)
	})
	endlessHello = sync.OnceValue(func() []byte {
		return append(helloRecords(tlslimit.MaxRaw-500, 1000), typeHandshake, 3, 1, 0x48, 0) // the largest possible record
	})
)

// withTLS are the attacks of a peer with the cookie.
var withTLS = []attack{
	{"long messages", 1000, func(a *attacker) { a.forge(250 << 10); a.awaitEnd() }},
	{"messages that do not end", 1000, func(a *attacker) {
		a.forge(tlslimit.MaxRaw - 1000)
		a.write([]byte{typeData, 3, 3, 0x41, 0})
	}},
}

// awaitEnd waits until the node has hung up.
func (a *attacker) awaitEnd() { io.Copy(io.Discard, a) }

// The types of records, RFC 8446, 5.1.
const (
	typeHandshake = 22
	typeData      = 23
)

// maxHello is the length of the longest ClientHello that crypto/tls accepts.
const maxHello = 0xffff

// helloRecords returns the first size bytes of a longer ClientHello, in records.
func helloRecords(size, each int) (b []byte) {
	hello := append([]byte{1, 0, 0xff, 0xff}, make([]byte, size-4)...)
	for part := range slices.Chunk(hello, each) {
		b = append(binary.BigEndian.AppendUint16(append(b, typeHandshake, 3, 1), uint16(len(part))), part...)
	}
	return b
}

// forge is admitted, and then sends the first size bytes of a TLS handshake message that no library
// would send: 256 KB of certificates.
func (a *attacker) forge(size int) {
	var secrets strings.Builder
	raw := &countedWrites{Conn: a.Conn}
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, KeyLogWriter: &secrets})
	if a.failed = c.Handshake(); a.failed != nil {
		return
	}
	raw.n = 0
	o := handshake.Options{Node: fmt.Sprintf("forger%d@127.0.0.1", a.i), Creation: 1, Cookie: cookie, LongLen: true}
	if _, a.failed = handshake.Start(c, nodeName, o); a.failed != nil {
		return
	}
	if _, a.failed = c.Write(make([]byte, 100<<10)); a.failed != nil { // ticks, in large records
		return
	}
	message := append([]byte{11, 3, 0xff, 0xff}, make([]byte, size)...)
	seal := sealer(secrets.String())
	for part := range slices.Chunk(message, 1000) {
		a.write(seal(raw.n, part))
		raw.n++
	}
}

// countedWrites counts TLS records: crypto/tls writes each with one call of Write.
type countedWrites struct {
	net.Conn
	n uint64
}

func (c *countedWrites) Write(b []byte) (int, error) {
	c.n++
	c.SetWriteDeadline(time.Now().Add(attackTime))
	return c.Conn.Write(b)
}

// sealer returns a function that makes handshake records of a client with
// TLS_AES_128_GCM_SHA256.
func sealer(secrets string) (seal func(number uint64, text []byte) []byte) {
	_, line, _ := strings.Cut(secrets, "CLIENT_TRAFFIC_SECRET_0 ")
	line, _, _ = strings.Cut(line, "\n")
	secret, err := hex.DecodeString(line[2*32+1:])
	if err != nil {
		panic(err)
	}
	expand := func(label string, size int) []byte {
		info := append([]byte{0, byte(size), byte(len("tls13 " + label))}, "tls13 "+label+"\x00"...)
		key, err := hkdf.Expand(sha256.New, secret, string(info), size)
		if err != nil {
			panic(err)
		}
		return key
	}
	block, err := aes.NewCipher(expand("key", 16))
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	iv := expand("iv", gcm.NonceSize())
	return func(number uint64, text []byte) []byte {
		nonce := bytes.Clone(iv)
		for i, b := range binary.BigEndian.AppendUint64(nil, number) {
			nonce[4+i] ^= b
		}
		header := binary.BigEndian.AppendUint16([]byte{typeData, 3, 3}, uint16(len(text)+1+gcm.Overhead()))
		return gcm.Seal(header, nonce, append(bytes.Clone(text), typeHandshake), header)
	}
}
