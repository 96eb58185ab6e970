package erltext

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

// MaxTextBytes bounds the text that Parse reads, and the binaries in it.
const MaxTextBytes = 1 << 20

// Parse reads the expressions before the first full stop, separated by commas. It returns them and the text
// after the full stop, whose lines count from 1 again. There are no expressions if the text is empty.
//
// Parse does not support funs other than fun M:F/A, records, comprehensions, operators other than the signs of
// numbers, variables as sizes in binaries, or patterns in maps.
//
// All errors are of type *Error. After an error, rest begins after the full stop, or on the next line if the text
// cannot be split into tokens.
func Parse(text string) (exprs []Expr, rest string, err error) {
	switch {
	case len(text) > MaxTextBytes:
		return nil, "", Position{1, 1}.Errorf("text of more than %d bytes", MaxTextBytes)
	case !utf8.ValidString(text):
		return nil, "", Position{1, 1}.Errorf("not UTF-8")
	}
	p := parser{scanner: scanner{text: text, Position: Position{1, 1}}}
	p.next()
	if p.err == nil && p.token.kind == endToken {
		return nil, "", nil
	}
	exprs = p.sequence()
	if p.token.kind != dotToken {
		p.misplaced()
	}
	for p.scanner.err == nil && p.last != dotToken && p.last != endToken {
		p.last = p.scanner.next().kind
	}
	rest = text[p.scanner.off:]
	switch {
	case p.scanner.err != nil:
		_, rest, _ = strings.Cut(rest, "\n")
		return nil, rest, p.scanner.err
	case p.err != nil:
		p.err.Incomplete = p.last == endToken
		return nil, rest, p.err
	}
	return exprs, rest, nil
}

// parser parses text. After an error it reads only endTokens.
type parser struct {
	scanner scanner
	token   token     // the next token
	last    tokenKind // of the latest token read
	depth   int
	err     *Error
}

func (p *parser) next() {
	if p.err != nil {
		return
	}
	p.token = p.scanner.next()
	if p.last = p.token.kind; p.scanner.err != nil {
		p.fail(p.scanner.err)
	}
}

// fail records an error, unless there was an earlier one.
func (p *parser) fail(err *Error) {
	if p.err == nil {
		p.err = err
		p.token = token{}
	}
}

func (p *parser) unsupported(t token) { p.fail(t.Errorf("not supported: %s", t.name())) }
func (p *parser) misplaced()          { p.fail(p.token.Errorf("syntax error before: %s", p.token.name())) }

// accept reports whether a symbol is next, and if so moves past it.
func (p *parser) accept(symbol string) bool {
	if !p.token.is(symbol) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(symbol string) {
	if !p.accept(symbol) {
		p.misplaced()
	}
}

// sequence reads expressions separated by commas.
func (p *parser) sequence() []Expr {
	exprs := []Expr{p.expr()}
	for p.accept(",") {
		exprs = append(exprs, p.expr())
	}
	return exprs
}

// until reads expressions up to a closing bracket.
func (p *parser) until(closer string) (exprs []Expr) {
	if p.accept(closer) {
		return nil
	}
	exprs = p.sequence()
	p.expect(closer)
	return exprs
}

// operators are the unsupported symbols that can follow an operand.
var operators = strings.Fields("+ - * / ++ -- == /= =< < >= > =:= =/= ! div rem band and bor bxor bsl bsr or xor " +
	"andalso orelse || # : (")

// openers are the unsupported words that an expression can begin with.
var openers = strings.Fields("not bnot catch fun if begin case receive try")

func (p *parser) expr() Expr {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > etf.MaxDepth {
		p.fail(p.token.Errorf("nested deeper than %d", etf.MaxDepth))
		return nil
	}
	start := p.token
	e := p.operand(math.MaxInt)
	switch {
	case p.accept("="):
		if !isPattern(e) {
			p.fail(start.Errorf("illegal pattern"))
		}
		return &Match{e, p.expr()}
	case p.token.kind == symbolToken && slices.Contains(operators, p.token.text):
		p.unsupported(p.token)
	}
	return e
}

// operand reads an operand. At most the given number of signs may precede it; an operand with a sign must be a number.
func (p *parser) operand(signs int) Expr {
	start, sign := p.token, int64(1)
	for ; signs > 0 && (p.token.is("-") || p.token.is("+")); signs-- {
		if p.token.is("-") {
			sign = -sign
		}
		p.next()
	}
	e := p.primary()
	if !start.is("-") && !start.is("+") {
		return e
	}
	if literal, ok := e.(*Literal); ok {
		switch n := literal.Term.(type) {
		case int64:
			literal.Term = shortest(new(big.Int).Mul(big.NewInt(n), big.NewInt(sign)))
			return e
		case float64:
			literal.Term = float64(sign) * n
			return e
		case *big.Int:
			literal.Term = shortest(n.Mul(n, big.NewInt(sign)))
			return e
		}
	}
	p.unsupported(start)
	return nil
}

func (p *parser) primary() Expr {
	t := p.token
	switch {
	case t.kind == numberToken:
		p.next()
		return &Literal{t.value}
	case t.kind == stringToken:
		return &Literal{p.characters()}
	case t.kind == varToken:
		p.next()
		return &Variable{t.text, t.Position}
	case t.kind == atomToken:
		return p.atomOrCall()
	case p.accept("("):
		e := p.expr()
		p.expect(")")
		return e
	case p.accept("{"):
		return p.compound(t, Compound{kind: aTuple, Parts: p.until("}")})
	case p.accept("["):
		return p.list(t)
	case p.accept("#"):
		return p.pairs(t)
	case p.accept("<<"):
		return p.binary(t)
	case p.accept("fun"):
		return p.export(t)
	case slices.Contains(openers, t.text):
		p.unsupported(t)
	default:
		p.misplaced()
	}
	return nil
}

// export reads the rest of fun Module:Function/Arity, the only fun that is a literal.
func (p *parser) export(start token) Expr {
	raw := []byte{byte(etf.ExportExt)}
	for _, end := range []string{":", "/"} {
		name := p.token
		if p.next(); name.kind != atomToken || !p.accept(end) {
			p.unsupported(start)
		}
		raw, _ = etf.Append(raw, etf.Atom(name.text), etf.AllCaps) // cannot fail: the scanner limits atoms
	}
	arity, ok := p.token.value.(int64)
	if !ok || arity != int64(uint8(arity)) {
		p.unsupported(start)
	}
	p.next()
	return &Literal{etf.Export(append(raw, byte(etf.SmallIntegerExt), byte(arity)))}
}

// characters reads adjacent strings as one list.
func (p *parser) characters() etf.Term {
	var list etf.List
	var latin1 []byte
	for ; p.token.kind == stringToken; p.next() {
		for _, c := range p.token.text {
			list = append(list, int64(c))
			if c <= 0xff {
				latin1 = append(latin1, byte(c))
			}
		}
	}
	if len(list) > 0 && len(latin1) == len(list) {
		return etf.String(latin1)
	}
	return list
}

func (p *parser) atomOrCall() Expr {
	call := &Call{Function: etf.Atom(p.token.text)}
	p.next()
	if p.accept(":") {
		call.Module, call.Function = call.Function, etf.Atom(p.token.text)
		if p.token.kind == varToken {
			p.unsupported(p.token)
		}
		if p.token.kind != atomToken {
			p.misplaced()
		}
		p.next()
		p.expect("(")
	} else if !p.accept("(") {
		return &Literal{call.Function}
	}
	call.Args = p.until(")")
	return call
}

// compound returns an expression that begins with the token start: a literal if all its parts are literals.
func (p *parser) compound(start token, c Compound) Expr {
	term, err := c.Term(func(part Expr) (etf.Term, error) {
		if literal, ok := part.(*Literal); ok {
			return literal.Term, nil
		}
		return nil, errNoLiteral
	})
	if err == errNoLiteral {
		return &c
	}
	if err != nil {
		p.fail(start.Errorf("%v", err))
	}
	return &Literal{term}
}

var errNoLiteral = errors.New("not a literal")

func (p *parser) list(start token) Expr {
	if p.accept("]") {
		return &Literal{etf.List(nil)}
	}
	parts := p.sequence()
	tail := Expr(&Literal{etf.List(nil)})
	if p.accept("|") {
		tail = p.expr()
	}
	p.expect("]")
	return p.compound(start, Compound{kind: aList, Parts: append(parts, tail)})
}

// pairs reads a map after its #.
func (p *parser) pairs(start token) Expr {
	p.expect("{")
	var parts []Expr
	for !p.accept("}") && p.err == nil {
		if len(parts) > 0 {
			p.expect(",")
		}
		parts = append(parts, p.expr())
		p.expect("=>")
		parts = append(parts, p.expr())
	}
	return p.compound(start, Compound{kind: aMap, Parts: parts})
}

// binary reads the rest of a binary; start is its <<.
func (p *parser) binary(start token) Expr {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > etf.MaxDepth {
		p.fail(p.token.Errorf("nested deeper than %d", etf.MaxDepth))
	}
	c := Compound{kind: aBinary}
	for !p.accept(">>") && p.err == nil {
		if len(c.Parts) > 0 {
			p.expect(",")
		}
		part, s := p.segment()
		c.Parts, c.segments = append(c.Parts, part), append(c.segments, s)
	}
	return p.compound(start, c)
}

func (p *parser) segment() (value Expr, s segment) {
	s = segment{size: -1, typ: "integer"}
	if t := p.token; t.kind == atomToken { // not a call, because a colon after it begins the size
		value = &Literal{etf.Atom(t.text)}
		p.next()
	} else {
		value = p.operand(1)
	}
	size := p.token
	if p.accept(":") {
		s.size = p.size()
	}
	if p.accept("/") {
		p.specifier(&s)
		for p.accept("-") {
			p.specifier(&s)
		}
	}
	if s.typ == "binary" {
		s.size *= 8
	}
	if s.size > 8*MaxTextBytes || s.typ == "utf8" && s.size >= 0 {
		p.fail(size.Errorf("illegal size"))
	}
	return value, s
}

func (p *parser) size() int {
	start := p.token
	if literal, ok := p.primary().(*Literal); ok {
		if n, ok := literal.Term.(int64); ok && n >= 0 && n <= 8*MaxTextBytes {
			return int(n)
		}
	}
	p.unsupported(start)
	return 0
}

// specifier reads one type specifier of a segment.
func (p *parser) specifier(s *segment) {
	t := p.token
	if t.kind != atomToken {
		p.misplaced()
	}
	switch t.text {
	case "integer", "float", "utf8", "binary", "bitstring":
		s.typ = etf.Atom(t.text)
	case "bytes":
		s.typ = "binary"
	case "bits":
		s.typ = "bitstring"
	case "little", "big":
		s.little = t.text == "little"
	case "signed", "unsigned":
		s.signed = t.text == "signed"
	default:
		p.unsupported(t)
	}
	p.next()
}
