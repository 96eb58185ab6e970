package etf

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Format appends the text of t on one line, as the Erlang shell prints it, except that the first number of a pid, port
// or reference, which in Erlang depends on the node that prints it, is always 0. For a value that is not a term it
// appends the error from Append.
func Format(dst []byte, t Term) []byte { return Pretty(dst, t, math.MaxInt) }

// Pretty is like Format, but if the text does not fit into width columns, it breaks lines between the parts of lists,
// tuples, maps and binaries, and indents them to the opening bracket. The text continues the last line of dst.
func Pretty(dst []byte, t Term, width int) []byte {
	external, err := Append(nil, t, AllCaps)
	if err != nil {
		return fmt.Appendf(dst, "#Error<%v>", err)
	}
	p := printer{r: NewReader(external), room: math.MaxInt}
	return p.term(1).append(dst, width)
}

// FormatRaw appends the text of an external term, with or without a version byte, for logs and
// errors. The text is that of Format. FormatRaw never fails and appends at most limit bytes. "..."
// replaces text beyond limit, terms deeper than MaxDepth, integers beyond MaxIntegerBytes, and bytes
// that are not a term.
func FormatRaw(dst, src []byte, limit int) []byte {
	limit = max(limit, 0)
	p := printer{r: NewReader(src), room: limit}
	if p.r.Peek() == VersionMagic {
		p.r.Version()
	}
	text := p.term(1).append(dst, math.MaxInt)
	if p.r.Finish() == nil && p.room >= 0 {
		return text
	}
	const dots = "..."
	end := min(len(text), len(dst)+max(limit-len(dots), 0))
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return append(text[:end], dots[:min(limit, len(dots))]...)
}

// piece is text that can be broken into lines between its parts.
type piece struct {
	text   string // before the parts
	parts  []piece
	end    string // after the parts
	before string // between the preceding part and this one
	width  int    // of the whole piece, without before
}

func (s *piece) add(before string, part piece) {
	part.before = before
	s.parts = append(s.parts, part)
	s.width += len(before) + part.width
}

func (s piece) append(dst []byte, width int) []byte {
	l := layout{dst: dst, width: width, column: utf8.RuneCount(dst[bytes.LastIndexByte(dst, '\n')+1:])}
	l.piece(s)
	return l.dst
}

// layout appends pieces to dst, in lines of at most width columns if possible.
type layout struct {
	dst           []byte
	column, width int
}

func (l *layout) text(s string) {
	l.dst = append(l.dst, s...)
	l.column += utf8.RuneCountInString(s)
}

func (l *layout) piece(s piece) {
	l.text(s.text)
	indent := max(0, min(l.column, l.width/2))
	for i, part := range s.parts {
		l.text(part.before)
		if i > 0 && l.column+part.width >= l.width { // with room for a comma
			l.dst = append(bytes.TrimRight(l.dst, " "), '\n')
			l.column = 0
			l.text(strings.Repeat(" ", indent))
		}
		l.piece(part)
	}
	l.text(s.end)
}

// printer turns the terms read from r into pieces until room is negative or r has failed.
type printer struct {
	r    Reader
	room int // bytes that the pieces may still have
}

func (p *printer) stopped() bool { return p.room < 0 || p.r.failed() }

// text returns s, or "" once the printer has stopped.
func (p *printer) text(s string) string {
	if p.stopped() {
		return ""
	}
	p.room -= len(s)
	return s
}

func (p *printer) leaf(s string) piece {
	s = p.text(s)
	return piece{text: s, width: utf8.RuneCountInString(s)}
}

// group returns a piece with n parts between brackets.
func (p *printer) group(opener string, n int, part func(i int) piece, closer string) piece {
	s := p.leaf(opener)
	for i := 0; i < n && !p.stopped(); i++ {
		before := ""
		if i > 0 {
			before = p.text(",")
		}
		s.add(before, part(i))
	}
	p.end(&s, closer)
	return s
}

func (p *printer) end(s *piece, closer string) {
	s.end = p.text(closer)
	s.width += len(s.end)
}

func (p *printer) term(depth int) piece {
	if depth > MaxDepth {
		p.room = -1
		return piece{}
	}
	r := &p.r
	inner := func(int) piece { return p.term(depth + 1) }
	switch tag := r.Peek(); tag {
	case SmallIntegerExt, IntegerExt, SmallBigExt, LargeBigExt:
		d := decoder{r: *r}
		n := d.term(depth)
		*r = d.r
		return p.leaf(fmt.Sprint(n))
	case FloatExt, NewFloatExt:
		return p.leaf(floatText(r.float(r.next())))
	case AtomExt, SmallAtomExt, AtomUTF8Ext, SmallAtomUTF8Ext:
		return p.leaf(atomText(string(r.Atom())))
	case BinaryExt:
		return p.binary(r.Binary(), 8)
	case BitBinaryExt:
		r.next()
		return p.binary(r.bits())
	case SmallTupleExt, LargeTupleExt:
		return p.group("{", r.Tuple(), inner, "}")
	case StringExt:
		text := r.StringExt()
		if latin1 := string(toUTF8(text)); printable(latin1) {
			return p.leaf(quoted(latin1, '"'))
		}
		return p.numbers("[", text, 8, "]")
	case ListExt:
		if text := p.characters(); text != nil {
			return p.leaf(quoted(string(toUTF8(text)), '"'))
		}
		list := p.group("[", r.ListHeader(), inner, "")
		if r.Peek() == NilExt {
			r.Nil()
		} else if !p.stopped() {
			list.add(p.text("|"), p.term(depth+1))
		}
		p.end(&list, "]")
		return list
	case NilExt:
		r.Nil()
		return p.leaf("[]")
	case MapExt:
		return p.group("#{", r.Map(), func(int) piece {
			pair := piece{}
			pair.add("", p.term(depth+1))
			pair.add(p.text(" => "), p.term(depth+1))
			return pair
		}, "}")
	case FunExt, NewFunExt, ExportExt:
		return p.leaf(funText(NewReader(r.Raw())))
	}
	return p.leaf(identifierText(parseIdentifier(r.Raw()))) // Raw fails for any other tag
}

// characters reads a list if it can be printed as text; otherwise it returns nil. It reads no more than has room.
func (p *printer) characters() (text []byte) {
	ahead := p.r
	for range ahead.ListHeader() {
		if ahead.Peek() != SmallIntegerExt {
			return nil
		}
		text = append(text, byte(ahead.Int()))
		if len(text) > p.room {
			break
		}
	}
	if len(text) <= p.room {
		ahead.Nil()
	}
	if ahead.failed() || !printable(string(toUTF8(text))) {
		return nil
	}
	p.r = ahead
	return text
}

// binary returns the piece of a binary. bits is the number of bits in its last byte.
func (p *printer) binary(data []byte, bits uint8) piece {
	if len(data) > p.room { // more cannot fit; a character that is cut would not be UTF-8
		data = bytes.TrimRightFunc(data[:max(p.room, 0)], func(c rune) bool { return c == utf8.RuneError })
	}
	text, latin1 := string(data), string(toUTF8(data))
	switch {
	case bits < 8:
	case utf8.RuneCountInString(text) < len(text) && printable(text):
		return p.leaf("<<" + quoted(text, '"') + "/utf8>>")
	case printable(latin1):
		return p.leaf("<<" + quoted(latin1, '"') + ">>")
	}
	return p.numbers("<<", data, bits, ">>")
}

// numbers returns the piece of bytes that are not text. bits is the number of bits in the last byte.
func (p *printer) numbers(opener string, data []byte, bits uint8, closer string) piece {
	return p.group(opener, len(data), func(i int) piece {
		if i == len(data)-1 && bits < 8 {
			return p.leaf(fmt.Sprintf("%d:%d", data[i]>>(8-bits), bits))
		}
		return p.leaf(strconv.Itoa(int(data[i])))
	}, closer)
}

// printable reports whether text is Latin-1 without control characters other than white space. Invalid UTF-8 counts as
// U+FFFD, which is not Latin-1.
func printable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return c < '\b' || c > '\r' && c < ' ' && c != '\x1b' || c > '~' && c < 0xa0 || c > 0xff
	})
}

// reserved lists the words that are atoms only in quotes.
var reserved = strings.Fields("after and andalso band begin bnot bor bsl bsr bxor case catch cond div end fun if let " +
	"not of or orelse receive rem try when xor")

// IsReserved reports whether Erlang reserves a word, so that it is an atom only in quotes.
func IsReserved(word string) bool { return slices.Contains(reserved, word) }

// atomText returns the text of an atom, in quotes unless it is a plain word.
func atomText(atom string) string {
	for i, c := range atom {
		lower := c >= 'a' && c <= 'z' || c >= 'ß' && c <= 'ÿ' && c != '÷'
		other := c >= 'A' && c <= 'Z' || c >= 'À' && c <= 'Þ' && c != '×' || c >= '0' && c <= '9' || c == '_' || c == '@'
		if !lower && (i == 0 || !other) {
			return quoted(atom, '\'')
		}
	}
	if atom == "" || IsReserved(atom) {
		return quoted(atom, '\'')
	}
	return atom
}

// quoted returns text in quotes. Characters that could change how a terminal shows the rest are escaped.
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
		case c > 0xff && !unicode.IsPrint(c):
			b = fmt.Appendf(b, `\x{%X}`, c)
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return string(utf8.AppendRune(b, quote))
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

// identifierText returns the text of a pid, port or reference.
func identifierText(id identifier) string {
	switch {
	case id.tag.IsPid():
		return fmt.Sprintf("<0.%d.%d>", id.word(0), id.word(1))
	case !id.tag.IsRef():
		return fmt.Sprintf("#Port<0.%d>", id.number())
	}
	text := "#Ref<0"
	for i := len(id.words)/4 - 1; i >= 0; i-- {
		text += fmt.Sprintf(".%d", id.word(i))
	}
	return text + ">"
}

// funText returns the text of a fun, as fun M:F/A or #Fun<Module.Index.Uniq>.
func funText(r Reader) string {
	tag := r.next()
	if tag == ExportExt {
		module, function := r.Atom(), r.Atom()
		return fmt.Sprintf("fun %s:%s/%d", atomText(string(module)), atomText(string(function)), r.Int())
	}
	f := r.fun(tag)
	module := quoted(string(f.module), '\'')
	return fmt.Sprintf("#Fun<%s.%d.%d>", module[1:len(module)-1], f.index, f.uniq)
}
