package erltext

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

// Pretty appends the text of t, on one line if it fits into width columns. Otherwise it breaks
// lines between the parts of lists, tuples, maps and binaries, and indents them to the opening
// bracket. The text continues the last line of dst. Lists and binaries of printable Latin-1 are
// printed as text. Values that are not terms are printed as etf.Format prints them.
func Pretty(dst []byte, t etf.Term, width int) []byte {
	p := printer{dst: dst, width: width}
	p.column = utf8.RuneCount(dst[bytes.LastIndexByte(dst, '\n')+1:])
	p.print(pieceOf(t))
	return p.dst
}

// piece is text that can be broken into lines between its parts.
type piece struct {
	text   string // before the parts
	parts  []piece
	end    string // after the parts
	before string // between the preceding part and this one
	width  int    // of the whole piece, without before
}

type printer struct {
	dst           []byte
	column, width int
}

func (p *printer) text(s string) {
	p.dst = append(p.dst, s...)
	p.column += utf8.RuneCountInString(s)
}

func (p *printer) print(s piece) {
	p.text(s.text)
	indent := max(0, min(p.column, p.width/2))
	for i, part := range s.parts {
		p.text(part.before)
		if i > 0 && p.column+part.width >= p.width { // with room for a comma
			p.dst = append(bytes.TrimRight(p.dst, " "), '\n')
			p.column = 0
			p.text(strings.Repeat(" ", indent))
		}
		p.print(part)
	}
	p.text(s.end)
}

func leaf(text string) piece { return piece{text: text, width: utf8.RuneCountInString(text)} }

// group returns a piece with the parts between brackets.
func group(text string, parts []piece, end string) piece {
	s := piece{text: text, parts: parts, end: end, width: len(text) + len(end)}
	for i := range parts {
		if i > 0 && parts[i].before == "" {
			parts[i].before = ","
		}
		s.width += len(parts[i].before) + parts[i].width
	}
	return s
}

func pieceOf(t etf.Term) piece {
	switch t := t.(type) {
	case etf.Atom:
		return leaf(atomText(string(t)))
	case []byte:
		return binaryPiece(t, 8)
	case etf.Bitstring:
		return binaryPiece(t.Bytes, t.Bits)
	case etf.Tuple:
		return group("{", pieces(t), "}")
	case etf.Map:
		parts := make([]piece, len(t))
		for i, pair := range t {
			value := pieceOf(pair.Value)
			value.before = " => "
			parts[i] = group("", []piece{pieceOf(pair.Key), value}, "")
		}
		return group("#{", parts, "}")
	case etf.List, etf.String, etf.ImproperList:
		return listPiece(t)
	}
	return leaf(string(etf.Format(nil, t)))
}

func pieces(terms []etf.Term) []piece {
	parts := make([]piece, len(terms))
	for i, t := range terms {
		parts[i] = pieceOf(t)
	}
	return parts
}

func listPiece(list etf.Term) piece {
	elements, tail := elementsOf(list)
	if _, proper := tail.(etf.List); !proper {
		end := pieceOf(tail)
		end.before = "|"
		return group("[", append(pieces(elements), end), "]")
	}
	text := make([]rune, len(elements))
	for i, e := range elements {
		c, _ := e.(int64) // other terms become 0, which is not printable
		text[i] = rune(min(max(c, 0), utf8.MaxRune))
	}
	if len(text) > 0 && printable(text) {
		return leaf(quoted(string(text), '"'))
	}
	return group("[", pieces(elements), "]")
}

// binaryPiece returns the piece of a binary. bits is the number of bits in its last byte.
func binaryPiece(data []byte, bits uint8) piece {
	text, latin1 := []rune(string(data)), make([]rune, len(data))
	for i, c := range data {
		latin1[i] = rune(c)
	}
	switch {
	case bits < 8 || len(data) == 0:
	case len(text) < len(data) && printable(text): // U+FFFD, for invalid UTF-8, is not printable
		return leaf("<<" + quoted(string(data), '"') + "/utf8>>")
	case printable(latin1):
		return leaf("<<" + quoted(string(latin1), '"') + ">>")
	}
	parts := make([]piece, len(data))
	for i, c := range data {
		parts[i] = leaf(strconv.Itoa(int(c)))
		if i == len(data)-1 && bits < 8 {
			parts[i] = leaf(fmt.Sprintf("%d:%d", c>>(8-bits), bits))
		}
	}
	return group("<<", parts, ">>")
}

// printable reports whether a list of these characters can be printed as text.
func printable(text []rune) bool {
	return !slices.ContainsFunc(text, func(c rune) bool {
		return c < '\b' || c > '\r' && c < ' ' && c != '\x1b' || c > '~' && c < 0xa0 || c > 0xff
	})
}

var plainAtom = form(lower + letter + `*\z`)

func atomText(atom string) string {
	if plainAtom.MatchString(atom) && !reserved[atom] {
		return atom
	}
	return quoted(atom, '\'')
}

func quoted(text string, quote rune) string {
	b := []byte(string(quote))
	for _, c := range text {
		i := strings.IndexRune("\b\t\n\v\f\r\x1b\x7f", c)
		switch {
		case c == quote || c == '\\':
			b = append(b, '\\', byte(c))
		case i >= 0:
			b = append(b, '\\', "btnvfred"[i])
		case c < ' ' || c > '~' && c < 0xa0:
			b = fmt.Appendf(b, `\%03o`, c)
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return string(utf8.AppendRune(b, quote))
}
