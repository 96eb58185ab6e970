package etf

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Format appends the text of t as Erlang's io:format("~0p") prints it: on one line, lists and binaries of
// printable Latin-1 as text. The first number of a pid, port or reference, an index of the printing node, is
// always 0. A value that is not a term shows as the error that Append has for it.
func Format(dst []byte, t Term) []byte {
	external, err := Append(nil, t, AllCaps)
	if err != nil {
		return fmt.Appendf(dst, "#Error<%v>", err)
	}
	return FormatRaw(dst, external, math.MaxInt)
}

// FormatRaw appends the text of a term's external bytes, a version byte in front or not, as Format does, for
// logs: it never fails and appends at most limit bytes. "..." stands for what is too long, deeper than
// MaxDepth, an integer beyond MaxIntegerBytes, or not a term.
func FormatRaw(dst, src []byte, limit int) []byte {
	limit = max(limit, 0)
	p := printer{r: NewReader(src), dst: dst, room: limit}
	if p.r.Peek() == VersionMagic {
		p.r.Version()
	}
	p.term(1)
	if p.r.Finish() == nil && !p.cut {
		return p.dst
	}
	const dots = "..."
	end := min(len(p.dst), len(dst)+max(limit-len(dots), 0))
	for end < len(p.dst) && end > len(dst) && !utf8.RuneStart(p.dst[end]) {
		end--
	}
	return append(p.dst[:end], dots[:min(limit, len(dots))]...)
}

// printer prints the terms at r. Once it is cut, or r has failed, nothing more is printed.
type printer struct {
	r    Reader
	dst  []byte
	room int // bytes that may still be appended
	cut  bool
}

func (p *printer) stopped() bool { return p.cut || p.r.failed() }

func (p *printer) text(s string) {
	if p.stopped() {
		return
	}
	if len(s) > p.room {
		s = s[:p.room]
		p.cut = true
	}
	p.dst = append(p.dst, s...)
	p.room -= len(s)
}

func (p *printer) number(n uint64) { p.text(strconv.FormatUint(n, 10)) }

func (p *printer) term(depth int) {
	if depth > MaxDepth {
		p.cut = true
	}
	if p.stopped() {
		return
	}
	r := &p.r
	switch tag := r.Peek(); tag {
	case SmallIntegerExt, IntegerExt:
		p.text(strconv.FormatInt(r.Int(), 10))
	case SmallBigExt, LargeBigExt:
		p.integer(r.big(r.next()))
	case FloatExt, NewFloatExt:
		p.text(floatText(r.float(r.next())))
	case AtomExt, SmallAtomExt, AtomUTF8Ext, SmallAtomUTF8Ext:
		p.atom(r.Atom())
	case BinaryExt:
		p.binary(r.Binary(), 8)
	case BitBinaryExt:
		r.next()
		p.binary(r.bits())
	case SmallTupleExt, LargeTupleExt:
		p.text("{")
		p.terms(r.Tuple(), 1, depth)
		p.text("}")
	case StringExt, ListExt, NilExt:
		p.list(depth)
	case MapExt:
		p.text("#{")
		p.terms(r.Map(), 2, depth)
		p.text("}")
	case FunExt, NewFunExt:
		p.fun()
	case ExportExt:
		p.export()
	default:
		p.identifier()
	}
}

// terms prints n terms, or n pairs of key and value if each is 2.
func (p *printer) terms(n, each, depth int) {
	for i := range n {
		if p.stopped() {
			return
		}
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

// list prints a list that may come in several pieces, each the tail of the one before.
func (p *printer) list(depth int) {
	if p.printable() {
		p.string()
		return
	}
	before := "["
	element := func() {
		p.text(before)
		before = ","
	}
	for !p.stopped() {
		switch p.r.Peek() {
		case ListExt:
			for range p.r.ListHeader() {
				if p.stopped() {
					return
				}
				element()
				p.term(depth + 1)
			}
			continue
		case StringExt:
			for _, c := range p.r.StringExt() {
				element()
				p.number(uint64(c))
			}
		case NilExt:
			p.r.Nil()
		default:
			if before == "[" { // no elements: the list is its tail
				p.term(depth + 1)
				return
			}
			p.text("|")
			p.term(depth + 1)
		}
		if before == "[" {
			p.text("[")
		}
		p.text("]")
		return
	}
}

// printable says whether the next list is one of printable characters, as far as there is room for them.
func (p *printer) printable() bool {
	r := p.r
	if r.Peek() == StringExt {
		text := r.StringExt()
		return len(text) > 0 && printableBytes(text[:min(len(text), p.room)])
	}
	n := 0
	if r.Peek() == ListExt {
		n = r.ListHeader()
	}
	for range min(n, p.room) {
		if c := r.Peek(); c != SmallIntegerExt && c != IntegerExt {
			return false
		}
		if !printableChar(r.Int()) {
			return false
		}
	}
	return n > p.room || n > 0 && r.Peek() == NilExt
}

// string prints a list that is printable.
func (p *printer) string() {
	p.text(`"`)
	if p.r.Peek() == StringExt {
		for _, c := range p.r.StringExt() {
			p.char(rune(c), '"')
		}
	} else {
		for range p.r.ListHeader() {
			if p.stopped() {
				return
			}
			p.char(rune(p.r.Int()), '"')
		}
		p.r.Nil()
	}
	p.text(`"`)
}

func (p *printer) integer(digits []byte, negative bool) {
	if len(digits) > min(MaxIntegerBytes, p.room) { // a byte makes more than two digits
		p.cut = true
		return
	}
	p.text(bigInt(digits, negative).String())
}

// binary prints a binary of whose last byte only some bits count.
func (p *printer) binary(data []byte, bits uint8) {
	if len(data) > 0 && bits == 8 && printableBytes(data[:min(len(data), p.room)]) {
		p.text(`<<"`)
		for _, c := range data {
			if p.stopped() {
				return
			}
			p.char(rune(c), '"')
		}
		p.text(`">>`)
		return
	}
	p.text("<<")
	for i, c := range data {
		if p.stopped() {
			return
		}
		if i > 0 {
			p.text(",")
		}
		if i == len(data)-1 && bits < 8 {
			p.number(uint64(c >> (8 - bits)))
			p.text(":")
			c = bits
		}
		p.number(uint64(c))
	}
	p.text(">>")
}

// identifier prints a pid, port or reference. What comes here otherwise is not a term.
func (p *printer) identifier() {
	id := takeApart(string(p.r.Raw()))
	switch id.tag {
	case PidExt, NewPidExt:
		p.text("<0.")
		p.number(uint64(id.word(0)))
		p.text(".")
		p.number(uint64(id.word(1)))
	case PortExt, NewPortExt, V4PortExt:
		p.text("#Port<0.")
		p.number(id.number())
	default:
		p.text("#Ref<0")
		for i := len(id.words)/4 - 1; i >= 0; i-- {
			p.text(".")
			p.number(uint64(id.word(i)))
		}
	}
	p.text(">")
}

func (p *printer) fun() {
	r := NewReader(p.r.Raw())
	f := r.fun(r.next())
	p.text("#Fun<")
	p.quoted(toUTF8(f.module, f.latin1))
	p.text("." + strconv.FormatInt(f.index, 10) + "." + strconv.FormatInt(f.uniq, 10) + ">")
}

func (p *printer) export() {
	r := NewReader(p.r.Raw())
	r.next()
	p.text("fun ")
	p.atom(r.Atom())
	p.text(":")
	p.atom(r.Atom())
	p.text("/" + strconv.FormatInt(r.Int(), 10))
}
