package node

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// conversation returns a recorded conversation with every frame as a pass-through: atoms take the place of
// distribution headers and references to an atom cache.
func conversation(t *testing.T, file string) (lines []line) {
	t.Helper()
	src, err := os.ReadFile("testdata/recorded/" + file)
	if err != nil {
		t.Fatal(err)
	}
	caches := map[string]cache{"C": {}, "S": {}}
	for row := range strings.Lines(string(src)) {
		from, digits, _ := strings.Cut(strings.TrimSpace(row), " ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 {
			if len(lines) < 5 { // the handshake, with lengths of 2 bytes
				n := 2 + int(binary.BigEndian.Uint16(b))
				lines = append(lines, line{from == "C", b[:n]})
				b = b[n:]
				continue
			}
			n := 4 + int(binary.BigEndian.Uint32(b))
			if plain, keep := caches[from].plain(b[4:n]); keep {
				frame := binary.BigEndian.AppendUint32(nil, uint32(len(plain)))
				lines = append(lines, line{from == "C", append(frame, plain...)})
			}
			b = b[n:]
		}
	}
	return lines
}

// cache is an atom cache. It holds atoms by segment and index.
type cache map[int]string

// plain returns a frame without its header. keep is false for frames of the spawn protocol.
func (c cache) plain(frame []byte) (plain []byte, keep bool) {
	if frame[0] != etf.VersionMagic || frame[1] != 68 {
		panic(fmt.Sprintf("not a distribution header: %x", frame[:2]))
	}
	t := terms{src: frame[2:]}
	t.atoms = c.header(&t)
	control := t.term(nil)
	plain = append([]byte{112, etf.VersionMagic}, control...)
	if len(t.src) > 0 {
		plain = append(append(plain, etf.VersionMagic), t.term(nil)...)
	}
	r := etf.NewReader(control)
	r.Tuple()
	switch op := r.Int(); {
	case op == 29 || op == 31: // SPAWN_REQUEST, SPAWN_REPLY
		return nil, false
	case op == 28 && !bytes.Contains(plain, []byte("nosuch")): // the end of a spawned process
		return nil, false
	}
	return plain, true
}

// header reads the atoms that a frame refers to, and caches new ones.
func (c cache) header(t *terms) (atoms []string) {
	n := int(t.take(1)[0])
	if n == 0 {
		return nil
	}
	flags := t.take(n/2 + 1)
	nibble := func(i int) byte { return flags[i/2] >> (i % 2 * 4) & 0xf }
	lengthSize := 1 + int(nibble(n)&1)
	for i := range n {
		key := int(nibble(i)&7)<<8 | int(t.take(1)[0])
		if nibble(i)&8 != 0 {
			length := 0
			for _, b := range t.take(lengthSize) {
				length = length<<8 | int(b)
			}
			c[key] = string(t.take(length))
		}
		atoms = append(atoms, c[key])
	}
	return atoms
}

// terms copies terms, with atoms instead of references to the cache.
type terms struct {
	src   []byte
	atoms []string
}

func (t *terms) take(n int) []byte {
	b := t.src[:n]
	t.src = t.src[n:]
	return b
}

func (t *terms) term(dst []byte) []byte {
	tag := t.take(1)[0]
	if etf.Tag(tag) == etf.AtomCacheRef {
		return etf.MustAppendAtom(dst, etf.Atom(t.atoms[t.take(1)[0]]), etf.AllCaps)
	}
	dst = append(dst, tag)
	switch etf.Tag(tag) {
	case etf.NilExt:
	case etf.SmallIntegerExt:
		dst = append(dst, t.take(1)...)
	case etf.IntegerExt:
		dst = append(dst, t.take(4)...)
	case etf.SmallAtomUTF8Ext:
		dst = t.sized(dst, 1)
	case etf.StringExt:
		dst = t.sized(dst, 2)
	case etf.BinaryExt:
		dst = t.sized(dst, 4)
	case etf.SmallTupleExt:
		n := t.take(1)
		dst = t.several(append(dst, n...), int(n[0]))
	case etf.ListExt:
		n := t.take(4)
		dst = t.several(append(dst, n...), int(binary.BigEndian.Uint32(n))+1)
	case etf.NewPidExt:
		dst = append(t.term(dst), t.take(12)...)
	case etf.NewerReferenceExt:
		n := t.take(2)
		dst = t.term(append(dst, n...))
		dst = append(dst, t.take(4+4*int(binary.BigEndian.Uint16(n)))...)
	default:
		panic(fmt.Sprintf("tag %d does not occur", tag))
	}
	return dst
}

// sized copies a length, of size bytes, and that many bytes after it.
func (t *terms) sized(dst []byte, size int) []byte {
	n := 0
	for _, b := range t.src[:size] {
		n = n<<8 | int(b)
	}
	return append(dst, t.take(size+n)...)
}

func (t *terms) several(dst []byte, n int) []byte {
	for range n {
		dst = t.term(dst)
	}
	return dst
}
