package digits

import (
	"errors"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

// sizes are those of the formats.
var sizes = map[int]*Size{64: NewSize(64), 80: NewSize(80), 128: NewSize(128)}

func number(hi, lo uint64) *big.Int {
	n := new(big.Int).SetUint64(hi)
	return n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(lo))
}

// text is what math/big makes of it, which has the same digits in another order.
func text(n *big.Int, base int) string {
	const theirs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return strings.Map(func(r rune) rune { return rune(alphabet[strings.IndexRune(theirs, r)]) }, n.Text(base))
}

// numbers are the lowest, the highest, and random ones of every length.
func numbers(size int) (all [][2]uint64) {
	rng := rand.New(rand.NewPCG(uint64(size), 1))
	high := ^uint64(0) >> (128 - size)
	all = [][2]uint64{{0, 0}, {0, 1}, {0, pow10 - 1}, {0, pow10}, {0, 10*pow10 - 1}, {0, ^uint64(0)}, {high, ^uint64(0)}, {high, 0}}
	for _, head := range []uint64{pow8 / 62, pow8} { // of 18 digits the lowest, and one more than the highest
		if up, low := bits.Mul64(head, pow10); up <= high {
			all = append(all, [2]uint64{up, low}, [2]uint64{up, low - 1})
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
			for _, n := range numbers(bits) {
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
			var where *ParseError
			if hi, lo, err := size.Parse(over, base); !errors.As(err, &where) || hi|lo != 0 {
				t.Errorf("%d bits, %q in base %d: %x %x, %v", bits, over, base, hi, lo, err)
			}
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
			if back, err := Append(nil, hi, lo, base); err != nil || strings.TrimLeft(s, "0") != strings.TrimLeft(string(back), "0") {
				t.Errorf("%d bits, %q of base %d comes back as %q, %v", bits, s, base, back, err)
			}
		}
	})
}
