package flake

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

type vector struct {
	Time     string            `json:"time_ms"`
	Worker   string            `json:"worker"`
	Sequence uint16            `json:"sequence"`
	ID       string            `json:"id_hex"`
	Bases    map[string]string `json:"bases"`
}

// vectors returns ids with their text in every base, taken from the original.
func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/bases.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(data, &all); err != nil || len(all) == 0 {
		t.Fatalf("testdata/bases.json: %d vectors, %v", len(all), err)
	}
	return all
}

func TestTextOfOriginal(t *testing.T) {
	for _, v := range vectors(t) {
		milli, err := strconv.ParseUint(v.Time, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		worker, err := strconv.ParseUint(v.Worker, 16, 48)
		if err != nil {
			t.Fatal(err)
		}
		id := Make(milli, Worker(worker), v.Sequence)
		if got := hex.EncodeToString(id[:]); got != v.ID {
			t.Errorf("id %s, want %s", got, v.ID)
		}
		if id.Milli() != milli || id.Worker() != Worker(worker) || id.Sequence() != v.Sequence {
			t.Errorf("%s decodes as %d, %v, %d", v.ID, id.Milli(), id.Worker(), id.Sequence())
		}
		if len(v.Bases) != MaxBase-MinBase+1 {
			t.Errorf("%s: %d bases", v.ID, len(v.Bases))
		}
		for name, want := range v.Bases {
			base, err := strconv.Atoi(name)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := id.Text(base); got != want || err != nil {
				t.Errorf("%s in base %d: %q, %v, want %q", v.ID, base, got, err, want)
			}
			if got, err := ParseBase(want, base); got != id || err != nil {
				t.Errorf("%q of base %d: %v, %v, want %v", want, base, got, err, id)
			}
		}
	}
}

// someIDs returns the lowest and the highest id, the ids next to each power of two, and random ids
// of every length.
func someIDs() []ID {
	rng := rand.New(rand.NewPCG(3, 4))
	ids := []ID{{}, fromWords(^uint64(0), ^uint64(0))}
	for bit := range 128 {
		power := new(big.Int).Lsh(big.NewInt(1), uint(bit))
		for near := int64(-1); near <= 1; near++ {
			ids = append(ids, idOf(new(big.Int).Add(power, big.NewInt(near))))
		}
		hi, lo := rng.Uint64(), rng.Uint64()
		ids = append(ids, idOf(new(big.Int).Rsh(number(fromWords(hi, lo)), uint(bit))))
	}
	return ids
}

func number(id ID) *big.Int { return new(big.Int).SetBytes(id[:]) }

func idOf(n *big.Int) (id ID) {
	n.FillBytes(id[:])
	return id
}

func TestAppendLeavesTheRest(t *testing.T) {
	id := Make(1_700_000_000_000, 1, 2)
	for base := MinBase; base <= MaxBase; base++ {
		buf := []byte(strings.Repeat("#", 200))
		text, _ := id.AppendBase(buf[:0], base)
		if rest := string(buf[len(text):]); strings.Trim(rest, "#") != "" {
			t.Errorf("base %d: wrote beyond the text: %q", base, rest)
		}
	}
}

func TestPaddedSortsAsIDs(t *testing.T) {
	ids := someIDs()
	for base := MinBase; base <= MaxBase; base++ {
		for i := 1; i < len(ids); i++ {
			a, _ := ids[i-1].Padded(base)
			b, _ := ids[i].Padded(base)
			if strings.Compare(a, b) != ids[i-1].Compare(ids[i]) {
				t.Fatalf("base %d: %q and %q do not sort as their ids do", base, a, b)
			}
		}
	}
}

func TestStringIsPaddedBase62(t *testing.T) {
	for _, id := range someIDs() {
		if want, _ := id.Padded(62); id.String() != want || len(want) != 22 {
			t.Errorf("%q, want %q", id.String(), want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		text string
		base int
		at   int
		says string
	}{
		{"", 62, 0, "0 digits; must be 1 to 22 in base 62"},
		{strings.Repeat("0", 23), 62, 0, "23 digits; must be 1 to 22 in base 62"},
		{strings.Repeat("1", 500), 2, 0, "500 digits"},
		{"12 4", 10, 2, `' '`},
		{"12a", 16, 2, `'a' is not a digit of base 16`},
		{"-1", 62, 0, `'-'`},
		{"0000000000000000000_00", 62, 19, `'_'`},
		{"_________________________________", 16, 0, "33 digits"},
		{"2", 2, 0, "is not a digit of base 2"},
		{"\xff", 62, 0, "is not a digit of base 62"},
		{"7n42DGM5Tflk9n8mt7Fhc8", 62, 0, "above the highest id"},
		{"zzzzzzzzzzzzzzzzzzzzzz", 62, 0, "above the highest id"},
		{"340282366920938463463374607431768211456", 10, 0, "above the highest id"},
	} {
		id, err := ParseBase(c.text, c.base)
		var where *ParseError
		if !errors.As(err, &where) || where.At != c.at || !strings.Contains(err.Error(), c.says) || id != (ID{}) {
			t.Errorf("%q in base %d: %v, %v, want %q at %d", c.text, c.base, id, err, c.says, c.at)
		}
		if err != nil && len(err.Error()) > 250 {
			t.Errorf("the error has %d bytes: %v", len(err.Error()), err)
		}
	}
	highest, err := ParseBase("7n42DGM5Tflk9n8mt7Fhc7", 62)
	if highest != fromWords(^uint64(0), ^uint64(0)) || err != nil {
		t.Errorf("the highest id: %v, %v", highest, err)
	}
	if got, want := (&ParseError{"x", 3, "4"}).Error(), `flake: "x" is not an id: 4 (byte 3)`; got != want {
		t.Error(got)
	}
}

func TestEncodings(t *testing.T) {
	for _, id := range someIDs() {
		if data, err := id.MarshalBinary(); !bytes.Equal(data, id[:]) || err != nil {
			t.Errorf("bytes of %v: %x, %v", id, data, err)
		}
		if back, err := Parse(id.UUID()); back != id || err != nil {
			t.Errorf("UUID of %v: %s, %v, %v", id, id.UUID(), back, err)
		}
		for _, text := range []string{strings.ToUpper(id.UUID()), "{" + id.UUID() + "}", "urn:uuid:" + id.UUID(),
			"URN:UUID:" + id.UUID()} {
			if back, err := Parse(text); back != id || err != nil {
				t.Errorf("%s of %v: %v, %v", text, id, back, err)
			}
		}
	}
}

// The error for a string from {get, 62} names the function that parses it.
func TestUnpadded(t *testing.T) {
	text, err := Make(1_700_000_000_000, 1, 7).Text(62)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("1", Width(62)+8)
	for text, want := range map[string]bool{text: true, text[1:]: true, text[1:] + "-": false, "edit": false,
		long: false} {
		_, err := Parse(text)
		err2 := new(ID).UnmarshalText([]byte(text))
		for _, err := range []error{err, err2} {
			if err == nil || strings.Contains(err.Error(), "ParseBase") != want {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

// ParseBase accepts fewer digits; UnmarshalText does not.
func TestUnmarshalShortText(t *testing.T) {
	var id ID
	if err := id.UnmarshalText([]byte("1")); err == nil || id != (ID{}) {
		t.Errorf("%v, %v", id, err)
	}
}

func TestUUIDForm(t *testing.T) {
	id, _ := ParseBase("0123456789ABCDEF0123456789ABCDEF", 16)
	if got := id.UUID(); got != "01234567-89ab-cdef-0123-456789abcdef" {
		t.Error(got)
	}
	for text, at := range map[string]int{
		"":                                        0,
		"01234567-89ab-cdef-0123-456789abcdef ":   0,
		"{01234567-89ab-cdef-0123-456789abcdef)":  0,
		"(01234567-89ab-cdef-0123-456789abcdef}":  0,
		"urn:guid:" + id.UUID():                   0,
		"01234567_89ab-cdef-0123-456789abcdef":    8,
		"01234567-89ab-cdef-0123-456789abcdeg":    35,
		"0123456G-89ab-cdef-0123-456789abcdef":    7,
		"01234567-89ab-cdef-0123-45678\x00abcdef": 29,
	} {
		var where *ParseError
		if id, err := Parse(text); !errors.As(err, &where) || where.At != at || id != (ID{}) {
			t.Errorf("%q: %v, %v, want an error at %d", text, id, err, at)
		}
	}
}

func TestSQL(t *testing.T) {
	id := Make(1_700_000_000_000, 0x020000000001, 7)
	if v, err := id.Value(); v != id.UUID() || err != nil {
		t.Errorf("value %v, %v", v, err)
	}
	for _, src := range []any{id.UUID(), []byte(id.UUID()), id[:], [16]byte(id), id.String(), []byte(id.String())} {
		var got ID
		if err := got.Scan(src); got != id || err != nil {
			t.Errorf("scanned %v: %v, %v", src, got, err)
		}
	}
	hex := strings.Repeat("0", 32) // Parse accepts it
	for _, src := range []any{1, id[:15], hex, []byte(hex), strings.Repeat("0", 36), strings.Repeat("x", 1<<20)} {
		got := id
		if err := got.Scan(src); err == nil || got != id || len(err.Error()) > 250 {
			t.Errorf("scanned %T: %v, %v", src, got, err)
		}
	}
}

func FuzzUUID(f *testing.F) {
	f.Add(ID{}.UUID())
	f.Add("01234567-89ab-CDEF-0123-456789abcdef")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := Parse(text); err == nil && len(text) == len(ID{}.UUID()) && id.UUID() != strings.ToLower(text) {
			t.Errorf("%q round-trips to %q", text, id.UUID())
		}
	})
}

func FuzzScan(f *testing.F) {
	id := Make(1_700_000_000_000, 1, 7)
	f.Add([]byte(id.UUID()))
	f.Add([]byte(id.String()))
	f.Add(id[:])
	f.Fuzz(func(t *testing.T, src []byte) {
		var id ID
		if err := id.Scan(src); err != nil {
			return
		}
		if s := string(src); s != string(id[:]) && s != id.String() && strings.ToLower(s) != id.UUID() {
			t.Errorf("%q is read as %v", src, id)
		}
	})
}
