package erltext

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

type shapeKind uint8

const (
	textShape  shapeKind = iota // never broken into lines
	bytesShape                  // <<1,2,3>>
	listShape
	tupleShape
	mapShape  // of pairShapes
	pairShape // a key and a value
)

func (k shapeKind) opener() string { return []string{"", "", "[", "{", "#{", ""}[k] }
func (k shapeKind) closer() string { return []string{"", "", "]", "}", "}", ""}[k] }

// restMark is what stands between the elements and the rest.
func (k shapeKind) restMark() string {
	if k == listShape {
		return "|"
	}
	return ","
}

// shape is a term, cut off at a depth.
type shape struct {
	kind   shapeKind
	text   string // on one line; what could not be printed on one may be cut
	width  int    // of all of it
	dots   bool   // it stands for more than could be printed
	tagged bool   // it is a tuple that begins with an atom
	parts  []shape
	rest   *shape // the tail of an improper list, or dots
}

// isText reports whether a pair has nothing in it that may be broken into lines.
func (s shape) isText() bool {
	return s.parts[0].kind == textShape && s.parts[1].kind == textShape
}

// openBehind returns how many brackets close after the i-th part.
func (s shape) openBehind(i, open int) int {
	if i+1 < len(s.parts) {
		return 0
	}
	return open + 1
}

func textOf(text string) shape {
	return shape{text: text, width: utf8.RuneCountInString(text)}
}

var dots = shape{text: "...", width: 3, dots: true}

// shapeOf returns the shape of a term of which depth levels are to be seen.
func shapeOf(t etf.Term, depth int) shape {
	if depth == 0 {
		return dots
	}
	switch t := t.(type) {
	case etf.Atom:
		return textOf(atomText(string(t)))
	case float64:
		return textOf(floatText(t))
	case []byte:
		return binaryShape(t, 8, depth)
	case etf.Bitstring:
		return binaryShape(t.Bytes, int(t.Bits), depth)
	case etf.List, etf.String, etf.ImproperList:
		return shapeOfList(t, depth)
	case etf.Tuple:
		return shapeOfTuple(t, depth)
	case etf.Map:
		return shapeOfMap(t, depth)
	}
	return textOf(string(etf.Format(nil, t)))
}

func shapeOfList(t etf.Term, depth int) shape {
	if rank(t) == nilRank {
		return textOf("[]")
	}
	if depth == 1 { // element does not take this for text, as Erlang does
		return shape{kind: listShape, rest: &dots}.finish()
	}
	if text, ok := printableText(t); ok {
		return textOf(quoted(text, '"'))
	}
	s := shape{kind: listShape}
	elements, tail := elementsOf(t)
	depth = s.fill(elements, depth)
	switch {
	case depth == 1 && (len(s.parts) < len(elements) || rank(tail) != nilRank):
		s.rest = &dots
	case rank(tail) != nilRank:
		rest := shapeOf(tail, depth-1)
		s.rest = &rest
	}
	return s.finish()
}

// fill adds the shapes of elements, each a level deeper than the one before it. It returns the depth that is
// left.
func (s *shape) fill(elements []etf.Term, depth int) int {
	for _, e := range elements {
		if depth == 1 {
			break
		}
		depth--
		s.parts = append(s.parts, shapeOf(e, depth))
	}
	return depth
}

// finish sets the text and the width.
func (s shape) finish() shape {
	separator := ","
	if s.kind == pairShape {
		separator = " => "
	}
	texts := make([]string, len(s.parts))
	for i, part := range s.parts {
		texts[i] = part.text
	}
	s.text = s.kind.opener() + strings.Join(texts, separator)
	if s.rest != nil {
		if len(s.parts) > 0 {
			s.text += s.kind.restMark()
		}
		s.text += s.rest.text
	}
	s.text += s.kind.closer()
	s.width = utf8.RuneCountInString(s.text)
	s.text = s.text[:min(len(s.text), utf8.UTFMax*lineChars)] // it is not printed if it is longer
	return s
}

func shapeOfTuple(t etf.Tuple, depth int) shape {
	if len(t) == 0 {
		return textOf("{}")
	}
	if depth == 1 {
		return textOf("{...}")
	}
	s := shape{kind: tupleShape}
	s.fill(t, depth)
	if len(s.parts) < len(t) {
		s.rest = &dots
	}
	_, isAtom := t[0].(etf.Atom)
	s.tagged = isAtom && len(t) > 1
	return s.finish()
}

func shapeOfMap(t etf.Map, depth int) shape {
	if len(t) == 0 {
		return textOf("#{}")
	}
	if depth == 1 {
		return textOf("#{...}")
	}
	s := shape{kind: mapShape}
	for i, pair := range t {
		if i == depth-1 {
			s.rest = &dots
			break
		}
		parts := []shape{shapeOf(pair.Key, depth-1), shapeOf(pair.Value, depth-1)}
		s.parts = append(s.parts, shape{kind: pairShape, parts: parts}.finish())
	}
	return s.finish()
}

// printableText returns a list as text, if it is printable.
func printableText(t etf.Term) (string, bool) {
	var text []rune
	elements, tail := elementsOf(t)
	for _, e := range elements {
		c, ok := e.(int64)
		if !ok || !printableChar(c) {
			return "", false
		}
		text = append(text, rune(c))
	}
	return string(text), rank(tail) == nilRank
}

// binaryShape returns the shape of a binary of whose last byte only some bits count.
func binaryShape(data []byte, bits, depth int) shape {
	if len(data) == 0 {
		return textOf("<<>>")
	}
	if depth == 1 {
		return textOf("<<...>>")
	}
	if bits == 8 {
		if text, ok := binaryText(data, depth-1); ok {
			return textOf(text)
		}
	}
	text := []byte("<<")
	for i, c := range data {
		if i > 0 {
			text = append(text, ',')
		}
		if i == depth-1 {
			text = append(text, "..."...)
			break
		}
		if i == len(data)-1 && bits < 8 {
			text = strconv.AppendInt(text, int64(c>>(8-bits)), 10)
			text = append(text, ':')
			c = byte(bits)
		}
		text = strconv.AppendInt(text, int64(c), 10)
	}
	text = append(text, ">>"...)
	return shape{kind: bytesShape, text: string(text), width: len(text)}
}

// binaryText returns a binary as text, if it or its first depth characters are printable.
func binaryText(data []byte, depth int) (string, bool) {
	limit := min(4*depth, len(data))
	var text []rune
	rest, wide := data, startsUTF8(data, limit)
	for len(rest) > 0 && len(text) < limit {
		c, size := rune(rest[0]), 1
		if wide {
			c, size = utf8.DecodeRune(rest)
		}
		if !printableChar(int64(c)) {
			break
		}
		text = append(text, c)
		rest = rest[size:]
	}
	if len(rest) > 0 && len(text) < depth {
		return "", false
	}
	printed := "<<" + quoted(string(text), '"')
	if len(data)-len(rest) > len(text) {
		printed += "/utf8"
	}
	if len(rest) > 0 {
		printed += "..."
	}
	return printed + ">>", true
}

// printableChar reports whether Erlang prints a list with c in it as text.
func printableChar(c int64) bool {
	return c >= '\b' && c <= '\r' || c == '\x1b' || c >= ' ' && c <= '~' || c >= 0xa0 && c <= 0xff
}

// startsUTF8 reports whether the first n characters of data are UTF-8, or all of them if they are fewer.
func startsUTF8(data []byte, n int) bool {
	for ; n > 0 && len(data) > 0; n-- {
		c, size := utf8.DecodeRune(data)
		if c == utf8.RuneError && size == 1 {
			return false
		}
		data = data[size:]
	}
	return true
}
