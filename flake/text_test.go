package flake

import (
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

// vectors are ids with their text in every base, taken from the original.
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
			t.Errorf("%s comes apart as %d, %v, %d", v.ID, id.Milli(), id.Worker(), id.Sequence())
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

// someIDs are the lowest, the highest, those around each power of two, and
// random ones of every size.
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
				t.Fatalf("base %d: %q and %q sort other than their ids", base, a, b)
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
		{"", 62, 0, "0 digits where base 62 has 1 to 22"},
		{strings.Repeat("0", 23), 62, 0, "23 digits where base 62 has 1 to 22"},
		{strings.Repeat("1", 500), 2, 0, "500 digits"},
		{"12 4", 10, 2, `' '`},
		{"12a", 16, 2, `'a', no digit of base 16`},
		{"-1", 62, 0, `'-'`},
		{"0000000000000000000_00", 62, 19, `'_'`},
		{"_________________________________", 16, 0, "33 digits"},
		{"2", 2, 0, "no digit of base 2"},
		{"\xff", 62, 0, "no digit of base 62"},
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
			t.Errorf("an error of %d bytes: %v", len(err.Error()), err)
		}
	}
	highest, err := ParseBase("7n42DGM5Tflk9n8mt7Fhc7", 62)
	if highest != fromWords(^uint64(0), ^uint64(0)) || err != nil {
		t.Errorf("the highest id: %v, %v", highest, err)
	}
}
