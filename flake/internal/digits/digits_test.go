package digits

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

var sizes = map[int]*Size{64: NewSize(64), 80: NewSize(80), 128: NewSize(128)}

func number(hi, lo uint64) *big.Int {
	n := new(big.Int).SetUint64(hi)
	return n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(lo))
}

// text formats n with math/big, which has the same digits in a different order.
func text(n *big.Int, base int) string {
	const theirs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return strings.Map(func(r rune) rune { return rune(alphabet[strings.IndexRune(theirs, r)]) }, n.Text(base))
}

// numbers returns the lowest and the highest number, those next to each power of the base, edge cases
// of words, and random numbers of every length.
func numbers(size, base int) (all [][2]uint64) {
	rng := rand.New(rand.NewPCG(uint64(size), uint64(base)))
	high := ^uint64(0) >> (128 - size)
	all = [][2]uint64{{0, 0}, {0, ^uint64(0)}, {high, ^uint64(0)}, {high, 0}}
	for _, hi := range []uint64{radixes[base].power - 1, radixes[base].power, 1<<60 | 1<<41} {
		if hi <= high {
			all = append(all, [2]uint64{hi, 0}, [2]uint64{hi, ^uint64(0)})
		}
	}
	hi, lo := uint64(0), uint64(1)
	for hi <= high {
		minus, borrow := bits.Sub64(lo, 1, 0)
		plus, carry := bits.Add64(lo, 1, 0)
		all = append(all, [2]uint64{hi - borrow, minus}, [2]uint64{hi, lo}, [2]uint64{hi + carry, plus})
		over, up := bits.Mul64(hi, uint64(base))
		if over != 0 {
			break
		}
		hi, lo = bits.Mul64(lo, uint64(base))
		if hi, carry = bits.Add64(hi, up, 0); carry != 0 {
			break
		}
	}
	for i := range 64 {
		all = append(all, [2]uint64{0, rng.Uint64() >> i}, [2]uint64{rng.Uint64() >> i & high, rng.Uint64()})
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	for bits, size := range sizes {
		for base := MinBase; base <= MaxBase; base++ {
			highest := number(size.high, ^uint64(0))
			if want := len(text(highest, base)); size.Width(base) != want {
				t.Fatalf("%d bits in base %d: %d digits, want %d", bits, base, size.Width(base), want)
			}
			for _, n := range numbers(bits, base) {
				want := text(number(n[0], n[1]), base)
				short, err1 := Append([]byte("x"), n[0], n[1], base)
				padded, err2 := size.AppendPadded([]byte("x"), n[0], n[1], base)
				if string(short) != "x"+want || string(padded) != "x"+strings.Repeat("0", size.Width(base)-len(want))+want {
					t.Fatalf("%x in base %d: %q, %v and %q, %v, want %q", n, base, short, err1, padded, err2, want)
				}
				for _, s := range [][]byte{short[1:], padded[1:]} {
					if hi, lo, err := size.Parse(string(s), base); hi != n[0] || lo != n[1] || err != nil {
						t.Fatalf("%d bits, %q in base %d: %x %x, %v", bits, s, base, hi, lo, err)
					}
				}
			}
			over := text(highest.Add(highest, big.NewInt(1)), base)
			var where *parseError
			if hi, lo, err := size.Parse(over, base); !errors.As(err, &where) || hi|lo != 0 {
				t.Errorf("%d bits, %q in base %d: %x %x, %v", bits, over, base, hi, lo, err)
			}
		}
	}
}

// Multiplying by the inverse is dividing, and a fraction has the digits of its word.
func TestDivide(t *testing.T) {
	for base := MinBase; base <= MaxBase; base++ {
		r := &radixes[base]
		for _, n := range numbers(128, base) {
			for _, hi := range []uint64{n[0], r.divisor - n[0]} {
				for _, lo := range []uint64{n[1], n[0], -n[0]} {
					want, rest := bits.Div64(hi%r.divisor, lo, r.divisor)
					if got, gotRest := r.divide(hi%r.divisor, lo); got != want || gotRest != rest {
						t.Fatalf("base %d: %x %x is %x and %x, want %x and %x", base, hi%r.divisor, lo, got, gotRest, want, rest)
					}
				}
			}
			for _, word := range []uint64{n[0] % r.power, -n[0] % r.power, n[1] % r.power} {
				if got, _ := bits.Mul64(r.fraction(word<<r.shift), r.power); got != word {
					t.Fatalf("base %d: the fraction of %x is that of %x", base, word, got)
				}
			}
		}
	}
}

func TestBases(t *testing.T) {
	size := sizes[128]
	for _, base := range []int{-1, 0, MinBase - 1, MaxBase + 1, math.MaxInt} {
		short, err1 := Append([]byte("x"), 0, 1, base)
		padded, err2 := size.AppendPadded([]byte("x"), 0, 1, base)
		hi, lo, err3 := size.Parse("1", base)
		if !errors.Is(err1, ErrBase) || !errors.Is(err2, ErrBase) || !errors.Is(err3, ErrBase) {
			t.Errorf("base %d: %v, %v, %v", base, err1, err2, err3)
		}
		if string(short) != "x" || string(padded) != "x" || hi|lo != 0 || size.Width(base) != 0 {
			t.Errorf("base %d: %q, %q, %x %x, %d digits", base, short, padded, hi, lo, size.Width(base))
		}
	}
}

func TestParseRefuses(t *testing.T) {
	ones := strings.Repeat("1", 128)
	for _, c := range []struct {
		text string
		base int
		at   int
		what string
	}{
		{"", 2, 0, "0 digits; must be 1 to 128 in base 2"},
		{ones + "1", 2, 0, "129 digits; must be 1 to 128 in base 2"},
		{strings.Repeat("0", 129), 2, 0, "129 digits; must be 1 to 128 in base 2"},
		{"2", 2, 0, "'2' is not a digit of base 2"},
		{"!", 62, 0, "'!' is not a digit of base 62"},
		{"0\x00", 62, 1, "'\\x00' is not a digit of base 62"},
		{"1Aa", 16, 2, "'a' is not a digit of base 16"},
		{"2" + ones[1:], 2, 0, "'2' is not a digit of base 2"}, // in the first word
		{ones[1:] + "2", 2, 127, "'2' is not a digit of base 2"},
		{ones[:70] + "_" + ones[71:], 2, 70, "'_' is not a digit of base 2"},
	} {
		var where *parseError
		if hi, lo, err := sizes[128].Parse(c.text, c.base); !errors.As(err, &where) || where.At != c.at ||
			where.What != c.what || hi|lo != 0 {
			t.Errorf("%q in base %d: %x %x, %v", c.text, c.base, hi, lo, err)
		}
	}
}

func TestQuote(t *testing.T) {
	long := strings.Repeat("x", 64)
	for text, want := range map[string]string{
		"a\n": `"a\n"`, long: `"` + long + `"`, long + "y": `"` + long + `"... (65 bytes)`,
	} {
		if got := Quote(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestHexValue(t *testing.T) {
	for i := range 256 {
		want := strings.IndexByte("0123456789abcdef", byte(i))
		if want < 0 {
			want = strings.IndexByte("0123456789ABCDEF", byte(i))
		}
		if got := int(HexValue(byte(i))); got != want && (want >= 0 || got < 16) {
			t.Errorf("%q: %d", byte(i), got)
		}
	}
}

// Each byte of a UUID's text must be one that its position allows.
func TestParseUUID(t *testing.T) {
	const text = "01234567-89ab-cdef-FEDC-BA9876543210"
	if hi, lo, ok := ParseUUID(text); hi != 0x0123456789abcdef || lo != 0xfedcba9876543210 || !ok {
		t.Errorf("%x %x, %t", hi, lo, ok)
	}
	for at := range len(text) {
		for c := range 256 {
			other := text[:at] + string([]byte{byte(c)}) + text[at+1:]
			wantHi, wantLo, err := ParseHex(strings.ReplaceAll(other, "-", ""), 0)
			allowed := err == nil && (c == '-') == (text[at] == '-')
			if hi, lo, ok := ParseUUID(other); ok != allowed || ok && (hi != wantHi || lo != wantLo) {
				t.Errorf("%q: %x %x, %t", other, hi, lo, ok)
			}
		}
	}
	for _, wrong := range []string{"", text[1:], text + "0"} {
		if _, _, ok := ParseUUID(wrong); ok {
			t.Error(wrong)
		}
	}
}

func TestBareUUID(t *testing.T) {
	const text = "01234567-89ab-cdef-FEDC-BA9876543210"
	for with, want := range map[string]int{
		text: 0, "{" + text + "}": 1, "urn:uuid:" + text: 9, "URN:UUID:" + text: 9,
		"{" + text: 0, text + "}": 0, "{" + text + ")": 0, "(" + text + "}": 0, "{" + text + "}}": 0, "{": 0,
		"urn:uuid:" + text + "0": 0, "urn:uuid;" + text: 0, "urn:uuid:": 0, "": 0,
	} {
		bare, at := BareUUID(with)
		if at != want || want > 0 && bare != text || want == 0 && bare != with {
			t.Errorf("%q: %q, %d", with, bare, at)
		}
	}
}

func TestPutUUID(t *testing.T) {
	for _, n := range append(numbers(128, 16), [2]uint64{0x0123456789abcdef, 0xfedcba9876543210}) {
		hex := fmt.Sprintf("%016x%016x", n[0], n[1])
		want := hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:]
		var got [36]byte
		if PutUUID(&got, n[0], n[1]); string(got[:]) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("zzzzzzzzzzz", 62)
	f.Add("18446744073709551616", 10)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, s string, base int) {
		for bits, size := range sizes {
			hi, lo, err := size.Parse(s, base)
			if err != nil {
				continue
			}
			if back, err := Append(nil, hi, lo, base); err != nil ||
				strings.TrimLeft(s, "0") != strings.TrimLeft(string(back), "0") {
				t.Errorf("%d bits, %q of base %d round-trips to %q, %v", bits, s, base, back, err)
			}
		}
	})
}

func TestHex(t *testing.T) {
	for _, c := range []struct {
		text   string
		from   int
		hi, lo uint64
		at     int // index of the first wrong byte, or -1
	}{
		{"", 0, 0, 0, -1},
		{"0x", 2, 0, 0, -1},
		{"0xfF", 2, 0, 0xff, -1},
		{"123456789abcdef0fedcba9876543210", 0, 0x123456789abcdef0, 0xfedcba9876543210, -1},
		{"12g4", 0, 0, 0, 2},
		{"0x12g4", 2, 0, 0, 4},
	} {
		hi, lo, err := ParseHex(c.text, c.from)
		var where *parseError
		if errors.As(err, &where); hi != c.hi || lo != c.lo || (err != nil) != (c.at >= 0) || err != nil && where.At != c.at {
			t.Errorf("%q from %d: %x %x, %v", c.text, c.from, hi, lo, err)
		}
	}
}

// parseError is like flake.ParseError.
type parseError struct {
	Text string
	At   int
	What string
}

func (e *parseError) Error() string { return e.What }

func init() {
	NewParseError = func(text string, at int, what string) error { return &parseError{text, at, what} }
}

func TestErrors(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, err := range []error{Errorf(long, 3, "%d", 4), Errorf([]byte(long), 3, "%d", 4)} {
		if e, ok := err.(*parseError); !ok || *e != (parseError{long[:maxQuoted], 3, "4"}) {
			t.Errorf("%#v", err)
		}
	}
	for src, want := range map[any]string{nil: "sql.Null", 1.5: "float64"} {
		if err := (&ScanError{src}); !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

func TestMust(t *testing.T) {
	wrong := &parseError{What: "wrong"}
	defer func() {
		if with := recover(); with != wrong {
			t.Errorf("Must panicked with %v", with)
		}
	}()
	if got := Must(7, nil); got != 7 {
		t.Error(got)
	}
	t.Error("Must returned", Must(7, error(wrong)))
}
