package flake

import (
	"github.com/flake-go/flake/flake/internal/digits"
)

// MinBase and MaxBase are the lowest and the highest base of an id's text.
const (
	MinBase = digits.MinBase
	MaxBase = digits.MaxBase
)

var size = digits.NewSize(128)

// Width is the number of digits of the highest id in a base from 2 to 62, and
// so of every padded text in it: 128 for 2, 32 for 16, 22 for 62. It is 0 for
// any other base.
func Width(base int) int { return size.Width(base) }

// String is the id as 22 digits of base 62: texts that sort as ids do.
func (id ID) String() string {
	var buf [22]byte
	text, _ := id.AppendText(buf[:0])
	return string(text)
}

// AppendText appends what [ID.String] returns to dst. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	hi, lo := id.words()
	return size.AppendPadded(dst, hi, lo, MaxBase)
}

// Text is the id as a number in a base from 2 to 62, digits 0-9A-Za-z in that
// order, without leading zeros: what the original answers to {get, Base}. Any other
// base is [ErrBase]. Such texts do not sort as ids do; those of [ID.Padded] do.
func (id ID) Text(base int) (string, error) {
	hi, lo := id.words()
	return digits.Text(hi, lo, base)
}

// AppendBase appends what [ID.Text] returns to dst. On [ErrBase] dst comes back
// as it was.
func (id ID) AppendBase(dst []byte, base int) ([]byte, error) {
	hi, lo := id.words()
	return digits.Append(dst, hi, lo, base)
}

// Padded is the id in a base from 2 to 62 with leading zeros to [Width] digits:
// in any one base such texts sort, as bytes, as the ids do. Any other base is
// [ErrBase].
func (id ID) Padded(base int) (string, error) {
	hi, lo := id.words()
	return size.Padded(hi, lo, base)
}

// ParseError says why a text is not an id: of this package, of snowflake or of sno.
type ParseError struct {
	Text string // what was to be an id, cut short if it is longer than any
	At   int    // the byte where it goes wrong
	What string // what is wrong there
}

func (e *ParseError) Error() string { return (*digits.Wrong)(e).Error() }

// ScanError is the error of Scan, of this package and those of other formats, for a value
// of the database that is no id in any form: neither bytes nor text, which may be a
// [*ParseError]. Its field Value has that value.
type ScanError = digits.ScanError

// Parse reads an id whose text tells its form by its length:
//
//	0000AboKHPfE7cAx9OrCYZ                22 digits of base 62, as [ID.String]
//	0000018b-cfe5-6800-0200-000000010007  as [ID.UUID]
//	0000018bcfe568000200000000010007      32 hexadecimal digits
//	0x0000018bcfe568000200000000010007    with 0x, or with \x as psql shows bytea
//
// Hexadecimal digits may be of either case. Anything else is a [*ParseError], and
// so are texts of other bases and those without leading zeros: they may be those of
// other ids as well, and are for [ParseBase].
func Parse(text string) (ID, error) {
	switch {
	case len(text) == uuidLen:
		return parseUUID(text)
	case len(text) == hexLen+2 && (text[:2] == "0x" || text[:2] == `\x`):
		return parsed(digits.ParseHex(text, 2))
	case len(text) == hexLen:
		return parsed(digits.ParseHex(text, 0))
	case len(text) == Width(MaxBase):
		return ParseBase(text, MaxBase)
	}
	return ID{}, digits.Errorf[ParseError](text, 0, "%d bytes, where %d digits of base 62, a UUID of %d, or %d hexadecimal digits belong",
		len(text), Width(MaxBase), uuidLen, hexLen)
}

const hexLen = 32

// ParseBase reads an id written in a base from 2 to 62, with any number of leading
// zeros up to [Width] digits: the reverse of [ID.Text] and [ID.Padded]. Letters
// of the other case are other digits, in every base. Any other base is [ErrBase];
// text that is empty, too long, above the highest id, or has anything but digits of
// the base is a [*ParseError].
func ParseBase(text string, base int) (id ID, err error) {
	hi, lo, err := size.Parse(text, base)
	if err != nil {
		return id, digits.As[ParseError](err)
	}
	id.set(hi, lo)
	return id, nil
}

// MustParse is [Parse] that panics where that returns an error: for ids that are
// written in a program.
func MustParse(text string) ID { return digits.Must(Parse(text)) }

func parsed(hi, lo uint64, err error) (ID, error) {
	return fromWords(hi, lo), digits.As[ParseError](err)
}
