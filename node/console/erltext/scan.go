package erltext

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

// Position is a place in Erlang text. Both numbers count from 1, columns in characters.
type Position struct{ Line, Column int }

// Errorf returns an error at the place.
func (p Position) Errorf(format string, args ...any) *Error {
	return &Error{p, fmt.Sprintf(format, args...)}
}

// Error says where Erlang text is wrong, in the words of the Erlang shell.
type Error struct {
	Position
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

type tokenKind uint8

const (
	endToken  tokenKind = iota // of the text, without a full stop before it
	dotToken                   // the full stop and the space after it
	atomToken                  // text is the atom
	varToken
	valueToken  // value is the number
	charToken   // value is the number
	stringToken // text is the string
	symbolToken // reserved words included
)

type token struct {
	kind  tokenKind
	text  string
	value etf.Term
	Position
}

func (t token) is(symbol string) bool { return t.kind == symbolToken && t.text == symbol }

// name returns the text of a token as an error shows it.
func (t token) name() string {
	switch t.kind {
	case dotToken:
		return "'.'"
	case atomToken:
		return atomText(t.text)
	case varToken:
		return t.text
	case valueToken:
		return shapeOf(t.value, 1).text
	case charToken:
		if t.value == int64(' ') {
			return `$\s`
		}
		return "$" + charText(rune(t.value.(int64)), -1)
	case stringToken:
		return quoted(t.text, '"')
	case symbolToken:
		return quoted(t.text, '\'')
	}
	return ""
}

// scanner takes text apart into tokens.
type scanner struct {
	text string
	off  int
	Position
	err  *Error // the first
	more bool   // it is only that the text ends too early
}

func newScanner(text string) scanner { return scanner{text: text, Position: Position{1, 1}} }

// peek returns the character n bytes on, -1 at the end and for what is not UTF-8.
func (s *scanner) peek(n int) rune {
	if s.off+n >= len(s.text) {
		return -1
	}
	c, size := utf8.DecodeRuneInString(s.text[s.off+n:])
	if c == utf8.RuneError && size == 1 {
		return -1
	}
	return c
}

func (s *scanner) end() bool { return s.off >= len(s.text) }

// skip moves past n bytes.
func (s *scanner) skip(n int) {
	for _, c := range s.text[s.off : s.off+n] {
		s.Column++
		if c == '\n' {
			s.Line++
			s.Column = 1
		}
	}
	s.off += n
}

// while moves past the characters that are in a class and returns them.
func (s *scanner) while(class func(rune) bool) string {
	n := 0
	for n < len(s.text)-s.off && class(s.peek(n)) {
		n += utf8.RuneLen(s.peek(n))
	}
	text := s.text[s.off : s.off+n]
	s.skip(n)
	return text
}

// fail notes an error.
func (s *scanner) fail(at Position, format string, args ...any) {
	if s.err == nil {
		s.err = at.Errorf(format, args...)
	}
}

func isSpace(c rune) bool   { return c >= 0 && c <= ' ' || c >= 0x80 && c <= 0xa0 }
func isDigit(c rune) bool   { return c >= '0' && c <= '9' }
func isComment(c rune) bool { return c >= 0 && c != '\n' }

func isLower(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'ß' && c <= 'ÿ' && c != '÷'
}

func isUpper(c rune) bool {
	return c >= 'A' && c <= 'Z' || c >= 'À' && c <= 'Þ' && c != '×' || c == '_'
}

func isName(c rune) bool { return isLower(c) || isUpper(c) || isDigit(c) || c == '@' }

// symbols of more than one character. A symbol that begins with another comes before it.
var symbols = []string{
	"=:=", "=/=", "...", "<<", ">>", "<-", "<=", "=>", ":=", "::", "->", "==", "/=", "=<", ">=", "++", "--", "||", "..", "?=",
}

// next returns the next token. After an error it must not be called again.
func (s *scanner) next() token {
	s.blank()
	t := token{kind: symbolToken, Position: s.Position}
	c := s.peek(0)
	switch {
	case s.end():
		t.kind = endToken
	case isLower(c):
		t.text = s.while(isName)
		if !reserved[t.text] || t.text == "maybe" || t.text == "else" { // those two since OTP 27 only
			t.kind = atomToken
			s.atomLength(t)
		}
	case isUpper(c):
		t.kind, t.text = varToken, s.while(isName)
		if utf8.RuneCountInString(t.text) > etf.MaxAtomChars {
			s.fail(t.Position, "illegal var")
		}
	case isDigit(c):
		t.kind = valueToken
		t.value = s.number(t.Position)
	case c == '$':
		t.kind = charToken
		t.value = s.character(t.Position)
	case c == '"':
		t.kind = stringToken
		t.text = s.quoted(t.Position, '"', "string")
	case c == '\'':
		t.kind = atomToken
		t.text = s.quoted(t.Position, '\'', "atom")
		s.atomLength(t)
	case c == '.' && s.fullStop():
		t.kind = dotToken
	default:
		t.text = s.symbol(t)
	}
	return t
}

// blank moves past space and comments.
func (s *scanner) blank() {
	s.while(isSpace)
	for s.peek(0) == '%' {
		s.while(isComment)
		s.while(isSpace)
	}
}

func (s *scanner) atomLength(t token) {
	if utf8.RuneCountInString(t.text) > etf.MaxAtomChars {
		s.fail(t.Position, "illegal atom")
	}
}

// fullStop reports whether the next dot ends the expression. If so, it moves past the dot and the space after it.
func (s *scanner) fullStop() bool {
	after := s.peek(1)
	switch {
	case s.off+1 == len(s.text), after == '%':
		s.skip(1)
	case isSpace(after):
		s.skip(1 + utf8.RuneLen(after))
	default:
		return false
	}
	return true
}

func (s *scanner) symbol(t token) string {
	for _, symbol := range symbols {
		if strings.HasPrefix(s.text[s.off:], symbol) {
			s.skip(len(symbol))
			return symbol
		}
	}
	c := s.peek(0)
	if c < 0 || c > 0xff {
		s.fail(t.Position, "illegal character")
		return ""
	}
	s.skip(utf8.RuneLen(c))
	return string(c)
}
