package flake

import "github.com/flake-go/flake/flake/internal/digits"

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
