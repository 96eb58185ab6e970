package etf

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// reserved are the words that are atoms only between quotes; maybe and else are so since OTP 27.
var reserved = map[string]bool{
	"after": true, "and": true, "andalso": true, "band": true, "begin": true, "bnot": true, "bor": true,
	"bsl": true, "bsr": true, "bxor": true, "case": true, "catch": true, "cond": true, "div": true,
	"else": true, "end": true, "fun": true, "if": true, "let": true, "maybe": true, "not": true, "of": true,
	"or": true, "orelse": true, "receive": true, "rem": true, "try": true, "when": true, "xor": true,
}

// atom prints the text of an atom, between quotes if they are needed.
func (p *printer) atom(text []byte) {
	if bare(text) {
		p.text(string(text))
		return
	}
	p.text("'")
	p.quoted(text)
	p.text("'")
}

// quoted prints the text of an atom as between quotes, but without them.
func (p *printer) quoted(text []byte) {
	for _, c := range string(text) {
		p.char(c, '\'')
	}
}

// bare says whether an atom needs no quotes.
func bare(text []byte) bool {
	for i, c := range string(text) {
		lower := c >= 'a' && c <= 'z' || c >= 'ß' && c <= 'ÿ' && c != '÷'
		other := c >= 'A' && c <= 'Z' || c >= 'À' && c <= 'Þ' && c != '×' || c >= '0' && c <= '9' || c == '_' || c == '@'
		if !lower && (i == 0 || !other) {
			return false
		}
	}
	return len(text) > 0 && !reserved[string(text)]
}

// char prints a character between quotes.
func (p *printer) char(c rune, quote rune) {
	switch {
	case c == quote || c == '\\':
		p.text(`\` + string(c))
	case c >= ' ' && c <= '~' || c >= 0xa0 && c <= 0xff:
		p.text(string(c))
	case c > 0xff:
		p.text(fmt.Sprintf(`\x{%X}`, c))
	default:
		if i := strings.IndexRune("\b\t\n\v\f\r\x1b\x7f", c); i >= 0 {
			p.text(`\` + "btnvfred"[i:i+1])
		} else {
			p.text(fmt.Sprintf(`\%03o`, c))
		}
	}
}

// printableChar says whether Erlang prints a list with c in it as text.
func printableChar(c int64) bool {
	return c >= '\b' && c <= '\r' || c == '\x1b' || c >= ' ' && c <= '~' || c >= 0xa0 && c <= 0xff
}

func printableBytes(text []byte) bool {
	for _, c := range text {
		if !printableChar(int64(c)) {
			return false
		}
	}
	return true
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
