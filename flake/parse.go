package flake

import "github.com/flake-go/flake/flake/internal/digits"

// ParseError tells why a text is not an id.
type ParseError struct {
	Text string // what was to be an id, cut short if it is longer than any
	At   int    // the byte where it goes wrong
	What string // what is wrong there
}

func (e *ParseError) Error() string { return (*digits.ParseError)(e).Error() }

func errorf[T string | []byte](text T, at int, format string, args ...any) error {
	return (*ParseError)(digits.Errorf(text, at, format, args...))
}

// ours gives a [*ParseError] for that of package digits.
func ours(err error) error {
	if e, ok := err.(*digits.ParseError); ok {
		return (*ParseError)(e)
	}
	return err
}

// Parse reads an id written in a base from 2 to 62, with any number of leading
// zeros up to [Width] digits: the reverse of [ID.Text] and [ID.Padded]. Letters
// of the other case are other digits, in every base. It gives [ErrBase] for any
// other base, and a [*ParseError] for text that is empty, too long, above the
// highest id, or has anything but digits of the base.
func Parse(text string, base int) (id ID, err error) {
	hi, lo, err := size.Parse(text, base)
	if err != nil {
		return id, ours(err)
	}
	id.set(hi, lo)
	return id, nil
}

// ParseAny reads an id whose text tells its form by its length:
//
//	0000AboKHPfE7cAx9OrCYZ                22 digits of base 62, as [ID.String]
//	0000018b-cfe5-6800-0200-000000010007  as [ID.UUID]
//	0000018bcfe568000200000000010007      32 hexadecimal digits
//	0x0000018bcfe568000200000000010007    with 0x, or with \x as psql shows bytea
//
// Hexadecimal digits may be of either case. Anything else is a [*ParseError], and
// so are texts of other bases and those without leading zeros: they may be those of
// other ids as well, and are for [Parse].
func ParseAny(text string) (ID, error) {
	switch {
	case len(text) == uuidLen:
		return ParseUUID(text)
	case len(text) == hexLen+2 && (text[:2] == "0x" || text[:2] == `\x`):
		return parseHex(text, 2)
	case len(text) == hexLen:
		return parseHex(text, 0)
	case len(text) == Width(MaxBase):
		return Parse(text, MaxBase)
	}
	return ID{}, errorf(text, 0, "%d bytes, where %d digits of base 62, a UUID of %d, or %d hexadecimal digits belong",
		len(text), Width(MaxBase), uuidLen, hexLen)
}

// MustParse is [ParseAny] that panics where that returns an error: for ids that
// are written in a program.
func MustParse(text string) ID {
	id, err := ParseAny(text)
	if err != nil {
		panic(err)
	}
	return id
}

const hexLen = 32

// parseHex reads the digits from a place on.
func parseHex(text string, from int) (id ID, err error) {
	for i := from; i < len(text); i++ {
		nibble := digits.HexValue(text[i])
		if nibble > 15 {
			return ID{}, errorf(text, i, "%q, no hexadecimal digit,", text[i])
		}
		n := (i - from) / 2
		id[n] = id[n]<<4 | nibble
	}
	return id, nil
}
