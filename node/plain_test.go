package node

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

var writePlain = flag.Bool("plain.write", false, "write testdata/plain")

// testdata/plain holds the conversations of testdata/recorded with every frame as a pass-through:
// atoms take the place of distribution headers and references to an atom cache.
func TestPlain(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		plain, made := filepath.Join("testdata/plain", filepath.Base(file)), convert(t, file)
		if *writePlain {
			if err := os.WriteFile(plain, made, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(plain); !bytes.Equal(got, made) {
			t.Errorf("%s is not the conversion of %s: %v", plain, file, err)
		}
	}
}

func convert(t *testing.T, file string) []byte {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	caches := map[string]cache{"C": {}, "S": {}}
	handshakes := 5 // frames of the handshake, with a length of 2 bytes
	for lines := bufio.NewScanner(bytes.NewReader(src)); lines.Scan(); {
		from, digits, _ := strings.Cut(lines.Text(), " ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 {
			if handshakes > 0 {
				handshakes--
				n := 2 + int(binary.BigEndian.Uint16(b))
				fmt.Fprintf(&out, "# %q\n%s %x\n", b[2:n], from, b[:n])
				b = b[n:]
				continue
			}
			n := 4 + int(binary.BigEndian.Uint32(b))
			if plain, text, keep := caches[from].plain(b[4:n]); keep {
				fmt.Fprintf(&out, "# %s\n%s %08x%x\n", text, from, len(plain), plain)
			}
			b = b[n:]
		}
	}
	return out.Bytes()
}

// cache is an atom cache. It holds atoms by segment and index.
type cache map[int]string

// plain returns a frame without its header, and its text as Erlang prints it. keep is false for
// frames of the spawn protocol.
func (c cache) plain(frame []byte) (plain []byte, text string, keep bool) {
	if frame[0] != etf.VersionMagic || frame[1] != 68 {
		panic(fmt.Sprintf("not a distribution header: %x", frame[:2]))
	}
	t := terms{src: frame[2:]}
	t.atoms = c.header(&t)
	control := t.term(nil)
	plain = append([]byte{112, etf.VersionMagic}, control...)
	text = string(etf.FormatRaw(nil, control, 1000))
	if len(t.src) > 0 {
		message := t.term(nil)
		plain = append(append(plain, etf.VersionMagic), message...)
		text += " " + string(etf.FormatRaw(nil, message, 1000))
	}
	r := etf.NewReader(control)
	r.Tuple()
	switch op := r.Int(); {
	case op == 29 || op == 31: // SPAWN_REQUEST, SPAWN_REPLY
		return nil, "", false
	case op == 28 && !strings.Contains(text, "nosuch"): // the end of a spawned process
		return nil, "", false
	}
	return plain, text, true
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
