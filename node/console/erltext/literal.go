package erltext

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

// maxDigits bounds the digits of a number, which take more than linear time to read.
const maxDigits = 2 * etf.MaxIntegerBytes

// digits reads digits, which may have a single _ between two of them, and returns them without it.
func (s *scanner) digits(class func(rune) bool) string {
	var all strings.Builder
	for {
		all.WriteString(s.while(class))
		if all.Len() == 0 || s.peek(0) != '_' || !class(s.peek(1)) {
			return all.String()
		}
		s.skip(1)
	}
}

// number reads an integer, in any base, or a float.
func (s *scanner) number(at Position) etf.Term {
	text := s.digits(isDigit)
	switch {
	case s.peek(0) == '#':
		base, err := strconv.Atoi(text)
		if err != nil || base < 2 || base > 36 {
			s.fail(at, "illegal base '%s'", strings.TrimLeft(text[:len(text)-1], "0")+text[len(text)-1:])
			return nil
		}
		s.skip(1)
		return s.integer(at, base, s.digits(func(c rune) bool { return isDigitOf(base, c) }))
	case s.peek(0) == '.' && isDigit(s.peek(1)):
		s.skip(1)
		return s.float(at, text+"."+s.digits(isDigit))
	}
	return s.integer(at, 10, text)
}

func isDigitOf(base int, c rune) bool {
	letters := rune(base - 10)
	return c >= '0' && c < '0'+rune(min(base, 10)) || c >= 'a' && c < 'a'+letters || c >= 'A' && c < 'A'+letters
}

func (s *scanner) integer(at Position, base int, digits string) etf.Term {
	if n, err := strconv.ParseInt(digits, base, 64); err == nil {
		return n
	}
	if digits == "" || len(digits) > maxDigits {
		s.fail(at, "illegal integer")
		return nil
	}
	n, _ := new(big.Int).SetString(digits, base)
	return n
}

// float reads the exponent of a float.
func (s *scanner) float(at Position, text string) etf.Term {
	if c := s.peek(0); c == 'e' || c == 'E' {
		s.skip(1)
		text += "e"
		if c := s.peek(0); c == '+' || c == '-' {
			s.skip(1)
			text += string(c)
		}
		text += s.digits(isDigit)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		s.fail(at, "illegal float")
		return nil
	}
	return f
}

// character reads what follows a $.
func (s *scanner) character(at Position) etf.Term {
	s.skip(1)
	c := s.char(at)
	if s.err != nil && s.end() {
		s.err.Reason = "unterminated character"
		s.more = true
	}
	return int64(c)
}

// quoted reads an atom or a string up to the quote that ends it.
func (s *scanner) quoted(at Position, quote rune, what string) string {
	s.skip(1)
	var text []byte
	for s.peek(0) != quote && !s.end() && s.err == nil {
		here := s.Position
		if c := s.char(here); s.err == nil {
			text = utf8.AppendRune(text, c)
		}
	}
	if s.end() {
		start := []rune(string(text))
		start = start[:min(len(start), 16)]
		s.err = at.Errorf("unterminated %s starting with %s", what, quoted(string(start), quote))
		s.more = true
	}
	if s.err == nil {
		s.skip(1)
	}
	return string(text)
}

// char reads a character between quotes. An error is reported at the given place.
func (s *scanner) char(at Position) rune {
	c := s.peek(0)
	if c < 0 {
		s.fail(at, "illegal character")
		return 0
	}
	s.skip(utf8.RuneLen(c))
	if c != '\\' {
		return c
	}
	c = s.peek(0)
	if i := strings.IndexRune("bdefnrstv", c); c >= 0 && i >= 0 {
		s.skip(1)
		return rune("\b\x7f\x1b\f\n\r \t\v"[i])
	}
	switch {
	case c < 0:
		s.fail(at, "illegal character")
		return 0
	case c >= '0' && c <= '7':
		return s.octal()
	case c == 'x':
		s.skip(1)
		return s.hex(at)
	case c == '^':
		s.skip(1)
		if c = s.peek(0); c < 0 {
			s.fail(at, "illegal character")
			return 0
		}
		s.skip(utf8.RuneLen(c))
		return c & 31
	}
	s.skip(utf8.RuneLen(c))
	return c
}

// octal reads one to three octal digits.
func (s *scanner) octal() (c rune) {
	for range 3 {
		if d := s.peek(0); d >= '0' && d <= '7' {
			c = c<<3 | (d - '0')
			s.skip(1)
		}
	}
	return c
}

// hex reads two hexadecimal digits, or any number of them between braces.
func (s *scanner) hex(at Position) rune {
	isHex := func(c rune) bool { return isDigitOf(16, c) }
	digits := ""
	if s.peek(0) == '{' {
		s.skip(1)
		digits = s.while(isHex)
		if s.peek(0) != '}' {
			digits = ""
		}
	} else if isHex(s.peek(0)) && isHex(s.peek(1)) {
		digits = s.text[s.off : s.off+2]
		s.skip(1)
	}
	c, err := strconv.ParseUint(digits, 16, 31)
	if err != nil || !utf8.ValidRune(rune(c)) || c == 0xfffe || c == 0xffff {
		s.fail(at, "illegal character")
		return 0
	}
	s.skip(1) // the last digit or the brace
	return rune(c)
}
