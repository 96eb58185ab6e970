package snowflake

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
)

// someIDs returns the lowest and the highest id, 10 in base 58, the ids next to each power of two,
// and random ids of every length.
func someIDs() []ID {
	rng := rand.New(rand.NewPCG(3, 4))
	ids := []ID{0, math.MaxUint64, 58}
	for bit := range 64 {
		power := ID(1) << bit
		ids = append(ids, power-1, power, power+1, ID(rng.Uint64()>>bit))
	}
	return ids
}

// text is a text form of ids: how to write it, and how to read it.
type text struct {
	write func(ID) string
	read  func(string) (ID, error)
}

func texts() map[string]text {
	all := map[string]text{
		"hex":    {ID.Hex, ParseHex},
		"0x":     {func(id ID) string { return "0x" + strings.ToUpper(id.Hex()) }, ParseHex},
		"short":  {func(id ID) string { return fmt.Sprintf("0x%x", uint64(id)) }, ParseHex},
		"binary": {ID.Binary, ParseBinary},
		"base32": {Base32.Text, Base32.Parse},
		"base36": {Base36.Text, Base36.Parse},
		"base58": {Base58.Text, Base58.Parse},
		"base64": {ID.Base64, ParseBase64},
		"text":   {ID.String, Parse},
	}
	for base := flake.MinBase; base <= flake.MaxBase; base++ {
		read := func(s string) (ID, error) { return ParseBase(s, base) }
		all["base "+strconv.Itoa(base)] = text{func(id ID) string { s, _ := id.Text(base); return s }, read}
		all["padded "+strconv.Itoa(base)] = text{func(id ID) string { s, _ := id.Padded(base); return s }, read}
	}
	return all
}

func TestTexts(t *testing.T) {
	for name, text := range texts() {
		for _, id := range someIDs() {
			s := text.write(id)
			if back, err := text.read(s); back != id || err != nil {
				t.Fatalf("%s of %d: %q round-trips to %d, %v", name, uint64(id), s, uint64(back), err)
			}
		}
	}
	id := ID(0x02308300cd461001)
	for want, got := range map[string]string{
		"02308300cd461001":   id.Hex(),
		"157770026425126913": id.String(),
		"0000 0010 0011 0000 1000 0011 0000 0000 1100 1101 0100 0110 0001 0000 0000 0001": id.Binary(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, id := range someIDs() {
		two, _ := id.Text(2)
		lower, _ := id.Text(36)
		if two != strconv.FormatUint(uint64(id), 2) || Base36.Text(id) != strconv.FormatUint(uint64(id), 36) ||
			lower != strings.ToUpper(Base36.Text(id)) {
			t.Errorf("%d is %q in base 2, %q and %q in base 36", uint64(id), two, lower, Base36.Text(id))
		}
		if got := id.Bytes(); FromBytes(got) != id || id.Hex() != hex.EncodeToString(got[:]) {
			t.Errorf("%d has the bytes %x and is %s in hex", uint64(id), got, id.Hex())
		}
	}
}

func TestParseErrors(t *testing.T) {
	all := texts()
	for _, c := range []struct {
		text, s string
		at      int
		says    string
	}{
		{"base 62", "", 0, "0 digits; must be 1 to 11 in base 62"},
		{"base 62", "zzzzzzzzzzz", 0, "above the highest id"},
		{"base 10", "18446744073709551616", 0, "above the highest id"},
		{"base 10", "-1", 0, `'-' is not a digit`},
		{"base32", "", 0, "0 digits; must be 1 to 13 in base 32"},
		{"base32", "yyyyyyyyyyyyyy", 0, "14 digits"},
		{"base32", "999999999999l", 12, "is not a digit of base 32"},
		{"base32", "9999999999999", 0, "above the highest id"},
		{"base36", "A", 0, "is not a digit of base 36"},
		{"base58", "1\xff", 1, "is not a digit of base 58"},
		{"base36", "1é", 1, "is not a digit of base 36"},
		{"base58", "1ı", 1, "is not a digit of base 58"}, // U+0131, whose low byte is a digit
		{"base58", "1O", 1, "is not a digit of base 58"},
		{"base58", "ZZZZZZZZZZZ", 0, "above the highest id"},
		{"base64", "", 0, "not the base64 encoding of a decimal"},
		{"base64", "MQ", 0, "not base64"},
		{"base64", "MQ==\n", 0, "not base64"},
		{"base64", "MR==", 0, "not base64"},
		{"base64", "MDE=", 0, "not the base64 encoding of a decimal"},
		{"base64", "LTE=", 0, "not the base64 encoding of a decimal"},
		{"base64", "MTg0NDY3NDQwNzM3MDk1NTE2MTY=", 0, "not the base64 encoding of a decimal"},
		{"hex", "", 0, "0 bytes"},
		{"hex", "0x", 0, "2 bytes"},
		{"hex", "0x002308300cd461001", 0, "19 bytes"},
		{"hex", "0X02308300cd4610", 1, "is not a hexadecimal digit"},
		{"hex", "02308300cd46100g", 15, "is not a hexadecimal digit"},
		{"hex", "0x02308300cd4610-1", 16, "is not a hexadecimal digit"},
		{"binary", "0", 0, "1 bytes"},
		{"binary", strings.Repeat("0", 79), 4, "a bit, or a space"},
		{"binary", "0 00" + ID(0).Binary()[4:], 1, "a bit, or a space"},
		{"binary", strings.Repeat("0000 ", 15) + "0002", 78, "a bit, or a space"},
		{"text", "000000000000000000001", 0, "21 digits"},
		{"text", strings.Repeat("9", 1000), 0, "1000 digits"},
		{"text", "1.0", 1, "is not a digit"},
	} {
		id, err := all[c.text].read(c.s)
		var where *flake.ParseError
		if !errors.As(err, &where) || where.At != c.at || !strings.Contains(err.Error(), c.says) || id != 0 {
			t.Errorf("%s of %q: %v, %v, want %q at %d", c.text, c.s, id, err, c.says, c.at)
		}
	}
}

func TestPaddedSortsAsIDs(t *testing.T) {
	ids := someIDs()
	for i := 1; i < len(ids); i++ {
		a, _ := ids[i-1].Padded(62)
		b, _ := ids[i].Padded(62)
		x, y := ids[i-1].Bytes(), ids[i].Bytes()
		want := ids[i-1].Compare(ids[i])
		if strings.Compare(a, b) != want || bytes.Compare(x[:], y[:]) != want || want == 0 != (ids[i-1] == ids[i]) {
			t.Errorf("%q and %q do not sort as their ids do", a, b)
		}
	}
}

func TestSQL(t *testing.T) {
	id := ID(1<<63 - 1)
	if v, err := id.Value(); v != int64(math.MaxInt64) || err != nil {
		t.Errorf("value %v, %v", v, err)
	}
	if v, err := (id + 1).Value(); err == nil {
		t.Errorf("value %v of %v", v, id+1)
	}
	b := id.Bytes()
	for _, src := range []any{int64(id), uint64(id), id.String(), []byte(id.String())} {
		var got ID
		if err := got.Scan(src); err != nil || got != id || got.IsZero() {
			t.Errorf("scanned %T: %v, %v", src, got, err)
		}
	}
	var none, read ID
	if err := errors.Join(none.Scan(int64(0)), read.UnmarshalBinary(b[:])); err != nil || !none.IsZero() || read != id {
		t.Errorf("%v, %v, %v", none, read, err)
	}
	for _, src := range []any{int64(-1), 1, b[:], "x"} {
		got := id
		if err := got.Scan(src); err == nil || got != id {
			t.Errorf("scanned %T: %v, %v", src, got, err)
		}
	}
}

// A string that can be parsed is what would be written, except for leading zeros and the case of
// hexadecimal digits.
func FuzzParse(f *testing.F) {
	for _, text := range texts() {
		f.Add(text.write(0x02308300cd461001))
		f.Add(text.write(math.MaxUint64))
	}
	f.Add("")
	all := texts()
	f.Fuzz(func(t *testing.T, s string) {
		for name, text := range all {
			id, err := text.read(s)
			if err != nil {
				continue
			}
			want, got := s, text.write(id)
			switch {
			case name == "hex" || name == "0x" || name == "short":
				want = strings.TrimLeft(strings.TrimPrefix(strings.ToLower(s), "0x"), "0")
				got = strings.TrimLeft(id.Hex(), "0")
			case name != "binary" && name != "base64":
				zero := text.write(0)[:1]
				want, got = strings.TrimLeft(want, zero), strings.TrimLeft(got, zero)
			}
			if got != want {
				t.Errorf("%s: %q round-trips to %q", name, s, got)
			}
		}
	})
}

func FuzzLayout(f *testing.F) {
	f.Add(uint64(0x02308300cd461001), uint8(41), uint8(5), uint8(12), uint64(Twitter.Epoch))
	f.Fuzz(func(t *testing.T, n uint64, time, datacenter, sequence uint8, epoch uint64) {
		l := Layout{time, datacenter, maxLow - datacenter - sequence, sequence, epoch}
		if l.Check() != nil {
			return
		}
		id := ID(n & (1<<(time+l.low()) - 1))
		p := partsOf(l, id)
		if back, err := l.Make(p.Milli, p.Machine, p.Sequence); back != id || err != nil {
			t.Errorf("%+v: %v round-trips to %v, %v", l, id, back, err)
		}
		if machine, err := l.Machine(p.Datacenter, p.Worker); machine != p.Machine || err != nil {
			t.Errorf("%+v: %+v has machine %d, %v", l, p, machine, err)
		}
	})
}

func TestZeroEncoding(t *testing.T) {
	var e Encoding
	for _, text := range []string{"", "0", "y"} {
		if id, err := e.Parse(text); err == nil {
			t.Errorf("%q: %v", text, id)
		}
	}
	defer func() {
		if words, ok := recover().(string); !ok || !strings.Contains(words, "use Base32") {
			t.Errorf("a zero Encoding panics with %v", words)
		}
	}()
	t.Error(e.Text(1))
}

func TestBytes(t *testing.T) {
	id, binary := ID(1541815603606036480), ID(0)
	data, _ := id.MarshalBinary()
	if err := binary.UnmarshalBinary(data); err != nil || binary != id {
		t.Errorf("%v, %v", binary, err)
	}
	if err := binary.UnmarshalBinary(data[:7]); err == nil || binary != id {
		t.Errorf("7 bytes: %v, %v", binary, err)
	}
	for _, text := range []string{"MTU0MTgxNTYwMzYwNjAzNjQ4MA", "MTU0MTgxNTYwMzYwNjAzNjQ4MA==\n", "MTIz====", "MTIz*"} {
		if id, err := ParseBase64(text); err == nil {
			t.Errorf("%q: %v", text, id)
		}
	}
}

// JSON holds an id as a string or, from other programs, as a number, which is read exactly.
func TestJSON(t *testing.T) {
	const id = ID(9265170216935424001) // above 2^63
	for _, data := range []string{`9265170216935424001`, `"9265170216935424001"`, `"\u0039265170216935424001"`} {
		var got struct {
			Plain  ID
			Quoted ID `json:",string"`
			Keys   map[ID]ID
		}
		all := fmt.Sprintf(`{"Plain": %s, "Quoted": "9265170216935424001", "Keys": {"9265170216935424001": %s}}`, data, data)
		if err := json.Unmarshal([]byte(all), &got); err != nil || got.Plain != id || got.Quoted != id || got.Keys[id] != id {
			t.Errorf("%s: %+v, %v", data, got, err)
		}
	}
	kept := id
	if err := json.Unmarshal([]byte(`null`), &kept); err != nil || kept != id {
		t.Errorf("null: %v, %v", kept, err)
	}
	for _, data := range []string{``, `-1`, `1e3`, `1.0`, `18446744073709551616`, `true`, `{}`, `"`} {
		kept := id
		if err := kept.UnmarshalJSON([]byte(data)); err == nil || kept != id {
			t.Errorf("%s: %v, %v", data, kept, err)
		}
	}
}
