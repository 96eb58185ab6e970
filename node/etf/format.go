package etf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Format appends the text of t on one line, like FormatRaw. For a value that is not a term it appends the error from
// Append.
func Format(dst []byte, t Term) []byte {
	external, err := Append(nil, t, AllCaps)
	if err != nil {
		return fmt.Appendf(dst, "#Error<%v>", err)
	}
	return FormatRaw(dst, external, math.MaxInt)
}

// FormatRaw appends the text of an external term, with or without a version byte, for logs and
// errors. The text has one line and is similar to Erlang's, but the first number of a pid, port or
// reference, which in Erlang depends on the node that prints it, is always 0. FormatRaw never fails
// and appends at most limit bytes. "..." replaces text beyond limit, terms deeper than MaxDepth,
// integers beyond MaxIntegerBytes, and bytes that are not a term.
func FormatRaw(dst, src []byte, limit int) []byte {
	limit = max(limit, 0)
	p := printer{r: NewReader(src), dst: dst, room: limit}
	if p.r.Peek() == VersionMagic {
		p.r.Version()
	}
	p.term(1)
	if p.r.Finish() == nil && p.room >= 0 {
		return p.dst
	}
	const dots = "..."
	end := min(len(p.dst), len(dst)+max(limit-len(dots), 0))
	for end < len(p.dst) && end > len(dst) && !utf8.RuneStart(p.dst[end]) {
		end--
	}
	return append(p.dst[:end], dots[:min(limit, len(dots))]...)
}

// printer prints the terms read from r until room is negative or r has failed.
type printer struct {
	r    Reader
	dst  []byte
	room int // bytes that may still be appended
}

func (p *printer) stopped() bool { return p.room < 0 || p.r.failed() }

func (p *printer) text(s string) {
	if !p.stopped() {
		p.dst = append(p.dst, s...)
		p.room -= len(s)
	}
}

func (p *printer) term(depth int) {
	r := &p.r
	switch tag := r.Peek(); tag {
	case SmallIntegerExt, IntegerExt, SmallBigExt, LargeBigExt:
		d := decoder{r: *r}
		n := d.term(depth)
		*r = d.r
		p.text(fmt.Sprint(n))
	case FloatExt, NewFloatExt:
		p.text(floatText(r.float(r.next())))
	case AtomExt, SmallAtomExt, AtomUTF8Ext, SmallAtomUTF8Ext:
		p.atom(r.Atom())
	case BinaryExt:
		p.text("<<")
		p.bytes(r.Binary(), 8)
		p.text(">>")
	case BitBinaryExt:
		r.next()
		p.text("<<")
		p.bytes(r.bits())
		p.text(">>")
	case SmallTupleExt, LargeTupleExt:
		p.terms("{", r.Tuple(), 1, depth)
		p.text("}")
	case StringExt:
		if text := r.StringExt(); printable(text) {
			p.bytes(text, 8)
		} else {
			p.text("[")
			p.bytes(text, 8)
			p.text("]")
		}
	case ListExt:
		p.terms("[", r.ListHeader(), 1, depth)
		if r.Peek() == NilExt {
			r.Nil()
		} else {
			p.terms("|", 1, 1, depth)
		}
		p.text("]")
	case NilExt:
		r.Nil()
		p.text("[]")
	case MapExt:
		p.terms("#{", r.Map(), 2, depth)
		p.text("}")
	case FunExt, NewFunExt, ExportExt:
		p.fun(NewReader(r.Raw()))
	default:
		p.identifier()
	}
}

// terms prints n terms or, if each is 2, n pairs of key and value.
func (p *printer) terms(open string, n, each, depth int) {
	p.text(open)
	if depth == MaxDepth && n > 0 {
		p.room = -1
	}
	for i := 0; i < n && !p.stopped(); i++ {
		if i > 0 {
			p.text(",")
		}
		p.term(depth + 1)
		if each == 2 {
			p.text(" => ")
			p.term(depth + 1)
		}
	}
}

var exponent = strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e-")

// floatText returns the shortest text that Erlang reads as f. Erlang needs a decimal point.
func floatText(f float64) string {
	mantissa, power, scientific := strings.Cut(strconv.FormatFloat(f, 'g', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if scientific {
		mantissa += "e" + power
	}
	return exponent.Replace(mantissa)
}

// atom prints an atom, in quotes unless it is a plain word.
func (p *printer) atom(text []byte) {
	plain := len(text) > 0
	for i, c := range text {
		lower := c >= 'a' && c <= 'z'
		plain = plain && (lower || i > 0 && (c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '@'))
	}
	if plain {
		p.text(string(text))
		return
	}
	p.text("'" + escaped(text) + "'")
}

var singleQuotes = strings.NewReplacer(`\"`, `"`, `'`, `\'`)

// escaped returns text escaped for single quotes.
func escaped(text []byte) string {
	quoted := strconv.Quote(string(text))
	return singleQuotes.Replace(quoted[1 : len(quoted)-1])
}

// printable reports whether data is Latin-1 text without control characters other than white space.
func printable(data []byte) bool {
	for _, c := range data {
		if c < '\b' || c > '\r' && c < ' ' && c != '\x1b' || c > '~' && c < 0xa0 {
			return false
		}
	}
	return len(data) > 0
}

// bytes prints data as text if printable, otherwise as numbers. bits is the number of bits in the last
// byte.
func (p *printer) bytes(data []byte, bits uint8) {
	data = data[:max(min(len(data), p.room), 0)] // more than room cannot fit
	if bits == 8 && printable(data) {
		p.text(strconv.Quote(string(toUTF8(data))))
		return
	}
	for i, c := range data {
		if i > 0 {
			p.text(",")
		}
		if i == len(data)-1 && bits < 8 {
			p.text(fmt.Sprintf("%d:%d", c>>(8-bits), bits))
		} else {
			p.text(strconv.Itoa(int(c)))
		}
	}
}

// identifier prints a pid, port or reference. It fails for any other tag.
func (p *printer) identifier() {
	id := parseIdentifier(p.r.Raw())
	switch id.tag {
	case PidExt, NewPidExt:
		p.text(fmt.Sprintf("<0.%d.%d>", id.word(0), id.word(1)))
	case PortExt, NewPortExt, V4PortExt:
		p.text(fmt.Sprintf("#Port<0.%d>", id.number()))
	default:
		p.text("#Ref<0")
		for i := len(id.words)/4 - 1; i >= 0; i-- {
			p.text(fmt.Sprintf(".%d", id.word(i)))
		}
		p.text(">")
	}
}

func (p *printer) fun(r Reader) {
	if r.Peek() == ExportExt {
		r.next()
		p.text("fun ")
		p.atom(r.Atom())
		p.text(":")
		p.atom(r.Atom())
		p.text(fmt.Sprintf("/%d", r.Int()))
		return
	}
	f := r.fun(r.next())
	p.text(fmt.Sprintf("#Fun<%s.%d.%d>", escaped(f.module), f.index, f.uniq))
}
