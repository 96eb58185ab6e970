package erltext

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

// maxDigits bounds the digits of a number, because reading them takes more than linear time.
const maxDigits = 2 * etf.MaxIntegerBytes

type tokenKind uint8

const (
	endToken    tokenKind = 0 // the end of the text
	dotToken    tokenKind = 1 // a full stop and the space after it
	atomToken   tokenKind = 2
	varToken    tokenKind = 3
	numberToken tokenKind = 4 // including characters
	stringToken tokenKind = 5
	symbolToken tokenKind = 6 // including reserved words
)

type token struct {
	kind  tokenKind
	text  string // as written; for an atom or a string, its value
	value etf.Term
	Position
}

func (t token) is(symbol string) bool { return t.kind == symbolToken && t.text == symbol }

// name returns the text of a token for errors.
func (t token) name() string {
	switch t.kind {
	case dotToken:
		return "'.'"
	case atomToken:
		return string(etf.Format(nil, etf.Atom(t.text)))
	case stringToken:
		return strconv.Quote(t.text)
	case symbolToken:
		return "'" + t.text + "'"
	}
	return t.text
}

const (
	space  = `[\x00-\x20\x80-\xa0]`
	lower  = `[a-zß-öø-ÿ]`
	letter = `[a-zß-öø-ÿA-ZÀ-ÖØ-Þ_0-9@]`
	escape = `\\(?:[0-7]{1,3}|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]+\}|\^.|[^x^0-7])`
	digits = `[0-9]+(?:_[0-9]+)*`
)

// rules lists the forms of tokens. The first that matches wins.
var rules = []struct {
	kind    tokenKind
	pattern *regexp.Regexp // the token is the group, if there is one
}{
	{dotToken, form(`(\.)%|\.(?:` + space + `|\z)`)},
	{atomToken, form(lower + letter + `*`)},
	{atomToken, form(`'(?:` + escape + `|[^\\'])*'`)},
	{varToken, form(`[A-ZÀ-ÖØ-Þ_]` + letter + `*`)},
	{stringToken, form(`"(?:` + escape + `|[^\\"])*"`)},
	{numberToken, form(`\$(?:` + escape + `|[^\\])`)},
	{numberToken, form(digits + `\.` + digits + `(?:[eE][+-]?` + digits + `)?`)},
	{numberToken, form(digits + `(?:#[0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*)?`)},
	{symbolToken, form(`=:=|=/=|\.\.\.|<<|>>|<-|<=|=>|:=|::|->|==|/=|=<|>=|\+\+|--|\|\||\.\.|\?=|[^"'$\\]`)},
}

var (
	blank       = form(`(?:` + space + `+|%[^\n]*)*`)
	openQuote   = form(`(?:"(?:\\.|[^\\"])*|'(?:\\.|[^\\'])*|\$)\\?\z`) // text that ends inside quotes or after a $
	escaped     = regexp.MustCompile(`(?s)` + escape)
	escapeNames = map[byte]string{'b': "\b", 'd': "\x7f", 'e': "\x1b", 'f': "\f", 'n': "\n", 'r': "\r", 's': " ",
		't': "\t", 'v': "\v"}
)

func form(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?s)\A(?:` + pattern + `)`) }

// scanner splits text into tokens.
type scanner struct {
	text string
	off  int
	Position
	err *Error // the first error
}

// skip moves past n bytes and returns them.
func (s *scanner) skip(n int) string {
	text := s.text[s.off : s.off+n]
	for _, c := range text {
		s.Column++
		if c == '\n' {
			s.Line++
			s.Column = 1
		}
	}
	s.off += n
	return text
}

// next returns the next token. It must not be called after an error.
func (s *scanner) next() token {
	s.skip(len(blank.FindString(s.text[s.off:])))
	t := token{Position: s.Position}
	rest := s.text[s.off:]
	if rest == "" {
		return t
	}
	for _, rule := range rules {
		found := rule.pattern.FindStringSubmatchIndex(rest)
		if found == nil {
			continue
		}
		end := found[1]
		if len(found) > 2 && found[3] > 0 {
			end = found[3]
		}
		t.kind, t.text = rule.kind, s.skip(end)
		if reason := t.complete(); reason != "" {
			s.err = t.Errorf("%s", reason)
		}
		return t
	}
	s.err = t.Errorf("illegal character")
	if openQuote.MatchString(rest) {
		s.err = t.Errorf("unterminated: %.20s", rest)
		s.err.Incomplete = true
	}
	return t
}

// complete sets the token's value, or returns what is wrong with the token.
func (t *token) complete() (reason string) {
	quote := t.text[0]
	switch {
	case quote == '"' || quote == '\'':
		var ok bool
		if t.text, ok = unescape(t.text[1 : len(t.text)-1]); !ok {
			return "illegal character"
		}
	case quote == '$':
		text, ok := unescape(t.text[1:])
		if !ok {
			return "illegal character"
		}
		c, _ := utf8.DecodeRuneInString(text)
		t.value = int64(c)
	case t.kind == numberToken:
		if t.value = number(strings.ReplaceAll(t.text, "_", "")); t.value == nil {
			return "illegal number"
		}
	case etf.IsReserved(t.text):
		t.kind = symbolToken
	}
	if (t.kind == atomToken || t.kind == varToken) && utf8.RuneCountInString(t.text) > etf.MaxAtomChars {
		return "name too long"
	}
	return ""
}

// number returns the number that text stands for, or nil.
func number(text string) etf.Term {
	base := 10
	if before, after, ok := strings.Cut(text, "#"); ok {
		if base, _ = strconv.Atoi(before); base < 2 || base > 36 { // the highest int if it does not fit
			return nil
		}
		text = after
	} else if strings.Contains(text, ".") {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
		return nil
	}
	if len(text) > maxDigits {
		return nil
	}
	n, ok := new(big.Int).SetString(text, base)
	if !ok {
		return nil
	}
	return shortest(n)
}

// unescape returns text with its escape sequences replaced, and reports whether all of them stand for characters.
func unescape(text string) (string, bool) {
	ok := true
	text = escaped.ReplaceAllStringFunc(text, func(sequence string) string {
		var c uint64 // if it does not fit, the highest of 31 bits, which is no character
		switch first := sequence[1]; {
		case escapeNames[first] != "":
			return escapeNames[first]
		case first == 'x':
			c, _ = strconv.ParseUint(strings.Trim(sequence[2:], "{}"), 16, 31)
		case first >= '0' && first <= '7':
			c, _ = strconv.ParseUint(sequence[1:], 8, 31)
		case first == '^':
			control, _ := utf8.DecodeRuneInString(sequence[2:])
			c = uint64(control & 31)
		default:
			return sequence[1:]
		}
		if !utf8.ValidRune(rune(c)) || c == 0xfffe || c == 0xffff {
			ok = false
		}
		return string(rune(c))
	})
	return text, ok
}
