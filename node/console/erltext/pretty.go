package erltext

import (
	"bytes"
	"math"

	"github.com/flake-go/flake/node/etf"
)

// lineChars is how many characters Pretty puts on a line, not counting the spaces before them.
const lineChars = 60

// Pretty appends the text of t as the Erlang shell prints values. It indents what does not fit on one line, and
// prints lists and binaries of printable Latin-1 as text. It prints "..." for what is deeper than depth, and for
// the elements of a list or binary beyond that many. The first character goes to the given column, counted from 1,
// of a line of width columns. The shell has column 1, the width of the terminal or 80, and depth 30. A negative
// depth is no limit. Pretty prints values that are not terms as Format does.
func Pretty(dst []byte, t etf.Term, column, width, depth int) []byte {
	if depth < 0 {
		depth = math.MaxInt / 8
	}
	s := shapeOf(t, depth)
	p := pretty{dst: dst, width: width}
	for _, p.tagIndent = range []int{-1, 4} { // after the tag, or else indented by four columns
		if p.term(s, column, 0, 0); !p.cramped {
			return p.dst
		}
		p.dst, p.cramped = p.dst[:len(dst)], false
	}
	p.tagIndent = 1
	p.term(s, column, 0, 0)
	return p.dst
}

// pretty lays out shapes. Its methods have these arguments: col is the column of the next character where a line
// may begin, open is the number of brackets that close after what is printed, and used is the number of characters
// on the line so far.
type pretty struct {
	dst       []byte
	width     int
	tagIndent int  // how far the elements of a tuple are indented if they do not fit after the tag
	cramped   bool // there is a tuple for which another tagIndent should be tried
}

// text appends text as it is.
func (p *pretty) text(s string) { p.dst = append(p.dst, s...) }

// line begins a new line.
func (p *pretty) line(col int) {
	p.text("\n")
	p.dst = append(p.dst, bytes.Repeat([]byte(" "), col-1)...)
}

func (p *pretty) fits(n, col, open, used int) bool {
	return n < p.width-col-open && n+used+open <= lineChars
}

func (p *pretty) term(s shape, col, open, used int) {
	switch {
	case s.kind == textShape || p.fits(s.width, col, open, used):
		p.text(s.text)
		return
	case s.kind == bytesShape:
		p.bytes(s, col+2, open, used)
		return
	}
	p.text(s.kind.opener())
	switch {
	case s.kind == mapShape:
		p.pairs(s, col+2, open, used+1)
	case s.tagged:
		p.tagged(s, col, open, used+1)
	default:
		p.elements(s, col+1, open, used+1)
	}
	p.text(s.kind.closer())
}

// elements prints the elements of a list or tuple.
func (p *pretty) elements(s shape, col, open, used int) {
	if len(s.parts) == 0 {
		p.text(s.rest.text)
		return
	}
	n := p.element(s.parts[0], col, s.openBehind(0, open), used)
	p.tail(s, 1, col, col+n, open, used+n)
}

// element prints an element and returns by how much longer the line is: by all of the line if nothing more
// is to go there.
func (p *pretty) element(s shape, col, open, used int) int {
	if s.kind == textShape && p.fits(s.width, col, open, used) {
		p.text(s.text)
		return s.width
	}
	p.term(s, col, open, used)
	return p.width
}

// tail prints the elements from the i-th on. The line is at column at.
func (p *pretty) tail(s shape, i, col, at, open, used int) {
	for ; i < len(s.parts); i++ {
		e, behind := s.parts[i], s.openBehind(i, open)
		p.text(",")
		if e.kind == textShape && p.fits(1+e.width+more(behind), at, behind, used) {
			p.text(e.text)
			at += 1 + e.width
			used += 1 + e.width
			continue
		}
		p.line(col)
		n := p.element(e, col, behind, 0)
		at, used = col+n, n
	}
	if s.rest == nil {
		return
	}
	p.text(s.kind.restMark())
	switch {
	case s.rest.dots:
		p.text(s.rest.text)
	case s.rest.kind == textShape && p.fits(1+s.rest.width, at, open+1, used):
		p.text(s.rest.text)
	default:
		p.line(col)
		p.term(*s.rest, col, open+1, 0)
	}
}

// more is the room for the comma after an element that is not the last.
func more(open int) int {
	if open == 0 {
		return 1
	}
	return 0
}

// tagged prints the elements of a tuple that begins with an atom.
func (p *pretty) tagged(s shape, col, open, used int) {
	tag := s.parts[0]
	indent := tag.width + 2
	at := col + indent
	p.text(tag.text)
	if p.tagIndent > 0 && indent > p.tagIndent {
		p.check(col + p.tagIndent)
		p.tail(s, 1, col+p.tagIndent, at, open, used+tag.width)
		return
	}
	p.check(at + 1)
	p.text(",")
	s.parts = s.parts[1:]
	p.elements(s, at, open, used+tag.width+1)
}

// check marks the layout as cramped if the elements of a tuple begin too far to the right.
func (p *pretty) check(col int) {
	if col+lineChars > p.width && col > p.width/2 {
		p.cramped = true
	}
}

// pairs prints the pairs of a map.
func (p *pretty) pairs(s shape, col, open, used int) {
	at := 0
	for i, pair := range s.parts {
		behind := s.openBehind(i, open)
		switch {
		case i == 0:
			n := p.pair(pair, col, behind, used)
			at, used = col+n, n // not used+n: Erlang forgets what is before a map
			continue
		case pair.isText() && p.fits(1+pair.width+more(behind), at, behind, used):
			p.text(",")
			p.text(pair.text)
			at += 1 + pair.width
			used += 1 + pair.width
			continue
		}
		p.text(",")
		p.line(col)
		n := p.pair(pair, col, behind, 0)
		at, used = col+n, n
	}
	if s.rest != nil {
		p.text(",...")
	}
}

// pair prints a key and its value, and returns what element does.
func (p *pretty) pair(s shape, col, open, used int) int {
	if p.fits(s.width, col, open, used) {
		p.text(s.text)
		if s.isText() {
			return s.width
		}
		return p.width
	}
	key, value := s.parts[0], s.parts[1]
	indent := 4
	if p.tagIndent > 0 {
		indent = p.tagIndent
	}
	p.term(key, col, open, used)
	p.text(" =>")
	p.line(col + indent)
	p.term(value, col+indent, open, 0)
	return p.width
}

// bytes prints a binary as numbers.
func (p *pretty) bytes(s shape, col, open, used int) {
	room := max(8, min(p.width-col, lineChars-4-used)-open)
	left := room
	text := s.text[2 : len(s.text)-2]
	p.text("<<")
	for len(text) > 0 {
		n := 1 + bytes.IndexByte([]byte(text), ',')
		if n == 0 {
			n = len(text)
		}
		if n > left {
			p.line(col)
			left = room
		}
		p.text(text[:n])
		left -= n
		text = text[n:]
	}
	p.text(">>")
}
