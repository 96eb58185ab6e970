package erltext

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// reserved are the words that are atoms only between quotes. Those of OTP 27 are maybe and else.
var reserved = words("after and andalso band begin bnot bor bsl bsr bxor case catch cond div else end fun if let maybe " +
	"not of or orelse receive rem try when xor")

// atomText returns the text of an atom, between quotes if they are needed.
func atomText(atom string) string {
	first, _ := utf8.DecodeRuneInString(atom)
	bare := isLower(first) && strings.IndexFunc(atom, func(c rune) bool { return !isName(c) }) < 0
	if bare && (!reserved[atom] || atom == "maybe" || atom == "else") {
		return atom
	}
	return quoted(atom, '\'')
}

// quoted returns text between quotes, as the Erlang shell prints it on a terminal that knows Unicode.
func quoted(text string, quote rune) string {
	b := []byte(string(quote))
	for _, c := range text {
		b = append(b, charText(c, quote)...)
	}
	return string(utf8.AppendRune(b, quote))
}

// charText returns a character as it stands between quotes.
func charText(c, quote rune) string {
	switch {
	case c == quote || c == '\\':
		return `\` + string(c)
	case c >= ' ' && c <= '~' || c >= 0xa0:
		return string(c)
	}
	if i := strings.IndexRune("\b\t\n\v\f\r\x1b\x7f", c); i >= 0 {
		return `\` + "btnvfred"[i:i+1]
	}
	return fmt.Sprintf(`\%03o`, c)
}

// floatText returns the shortest digits that read back as f, laid out as Erlang does: with a point always,
// and an exponent where that is shorter or f is beyond 2^53.
func floatText(f float64) string {
	var buf [32]byte
	b := strconv.AppendFloat(buf[:0], math.Abs(f), 'e', -1, 64) // d.ddde±xx
	mantissa, exponent, _ := bytes.Cut(b, []byte("e"))
	exp, _ := strconv.Atoi(string(exponent))
	digits := strings.Replace(string(mantissa), ".", "", 1)
	sign := ""
	if math.Signbit(f) {
		sign = "-"
	}
	point := exp + 1 // position of the point in digits
	scientific := digits[:1] + "." + digits[1:] + "e" + strconv.Itoa(exp)
	if len(digits) == 1 {
		scientific = digits + ".0e" + strconv.Itoa(exp)
	}
	cost := len(scientific) - len(digits)
	switch {
	case f == 0:
		return sign + "0.0"
	case point > 0 && point < len(digits):
		return sign + digits[:point] + "." + digits[point:]
	case point <= 0 && 2-point <= cost:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case point > 0 && point-len(digits)+2 <= cost && math.Abs(f) < 1<<53:
		return sign + digits + strings.Repeat("0", point-len(digits)) + ".0"
	}
	return sign + scientific
}
