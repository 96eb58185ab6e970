package erltext

import (
	"errors"
	"math/big"
	"strings"

	"github.com/flake-go/flake/node/etf"
)

// MaxTextBytes bounds the text that Parse reads.
const MaxTextBytes = 1 << 20

// ErrIncomplete means that the text has no full stop yet.
var ErrIncomplete = errors.New("erltext: expression is not complete")

// Parse reads the expressions before the first full stop, separated by commas. It returns them and the text
// after the full stop, whose lines count from 1 again. If there is no full stop, Parse returns ErrIncomplete with
// more set. Without more, such text is wrong, unless it is empty, which is no expressions.
//
// The expressions are literals, variables, matches and calls. Not supported are funs, records, comprehensions,
// operators except the signs of numbers, binaries of anything but literals, and patterns in maps.
//
// Other errors are *Error, with the Erlang shell's text. As in the shell, the rest then begins after the full
// stop, or on the next line if a character is wrong.
func Parse(text string, more bool) (exprs []Expr, rest string, err error) {
	if len(text) > MaxTextBytes {
		return nil, "", Position{1, 1}.Errorf("more than %d bytes", MaxTextBytes)
	}
	s := newScanner(text)
	t := s.next()
	empty := t.kind == endToken
	for s.err == nil && t.kind != endToken && t.kind != dotToken {
		t = s.next()
	}
	switch {
	case more && (s.more || s.err == nil && t.kind == endToken):
		return nil, text, ErrIncomplete
	case s.err != nil:
		_, rest, _ := strings.Cut(text[s.off:], "\n")
		return nil, rest, s.err
	case empty:
		return nil, "", nil
	}
	p := parser{s: newScanner(text[:s.off])}
	exprs = p.all()
	if p.err == nil {
		p.err = p.illegal
	}
	if p.err != nil {
		return nil, text[s.off:], p.err
	}
	return exprs, text[s.off:], nil
}

// parser parses text in which all tokens are well-formed. After an error it sees nothing but endTokens.
type parser struct {
	s       scanner
	token   token
	depth   int
	err     *Error
	illegal *Error // wrong, though the grammar allows it
}

func (p *parser) next() {
	if p.err != nil {
		return
	}
	last := p.token
	if p.token = p.s.next(); p.token.kind == endToken {
		p.token.Position = last.Position // as Erlang has it
	}
}

func (p *parser) fail(err *Error) {
	if p.err == nil {
		p.err = err
		p.token = token{}
	}
}

// unsupported fails at something that is right in Erlang.
func (p *parser) unsupported(t token) { p.fail(t.Errorf("not supported: %s", t.name())) }

// misplaced fails at a token that is wrong here in Erlang too.
func (p *parser) misplaced() { p.fail(p.token.Errorf("syntax error before: %s", p.token.name())) }

func (p *parser) forbid(at Position, reason string) {
	if p.illegal == nil {
		p.illegal = at.Errorf("%s", reason)
	}
}

// accept moves past a symbol if it is next.
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

func (p *parser) all() []Expr {
	p.next()
	exprs := []Expr{p.expr()}
	for p.accept(",") {
		exprs = append(exprs, p.expr())
	}
	if p.token.kind != dotToken {
		p.misplaced()
	}
	return exprs
}

// operators are the words and signs that may follow an expression, except =.
var operators = words("+ - * / ++ -- == /= =< < >= > =:= =/= ! div rem band and bor bxor bsl bsr or xor andalso orelse")

// openers are those that an expression may begin with and that are not supported.
var openers = words("not bnot catch fun if begin case receive try")

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

func (p *parser) expr() Expr {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > etf.MaxDepth {
		p.fail(p.token.Errorf("nested deeper than %d", etf.MaxDepth))
		return nil
	}
	start := p.token
	e := p.signed()
	switch {
	case p.accept("="):
		if !isPattern(e) {
			p.forbid(start.Position, "illegal pattern")
		}
		return &Match{e, p.expr()}
	case p.token.kind == symbolToken && operators[p.token.text]:
		p.unsupported(p.token)
	}
	return e
}

// signed reads an operand, which is a number if there are signs before it.
func (p *parser) signed() Expr {
	sign := p.token
	negative, signs := false, 0
	for p.token.is("-") || p.token.is("+") {
		negative = negative != p.token.is("-")
		signs++
		p.next()
	}
	e := p.operand()
	if signs == 0 || p.err != nil {
		return e
	}
	literal, _ := e.(*Literal)
	if literal == nil || rank(literal.Term) > floatRank {
		p.unsupported(sign)
		return nil
	}
	if negative {
		literal.Term = negated(literal.Term)
	}
	return e
}

func negated(number etf.Term) etf.Term {
	switch n := number.(type) {
	case float64:
		return -n
	case int64:
		return -n // not the least one: the text has no sign
	}
	n := new(big.Int).Neg(bigOf(number))
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

// operand reads what may stand between operators.
func (p *parser) operand() Expr {
	if p.token.kind == atomToken {
		return p.atomOrCall()
	}
	start := p.token
	e := p.primary()
	if p.token.is("#") || (p.token.is("(") || p.token.is(":")) && !start.is("#") {
		p.unsupported(p.token)
	}
	return e
}

func (p *parser) primary() Expr {
	t := p.token
	switch {
	case t.kind == valueToken || t.kind == charToken:
		p.next()
		return &Literal{t.value}
	case t.kind == stringToken:
		return &Literal{stringTerm(p.strings())}
	case t.kind == varToken:
		p.next()
		return &Variable{t.text, t.Position}
	case p.accept("("):
		e := p.expr()
		p.expect(")")
		return e
	case p.accept("{"):
		return compound(Tuple, p.sequence("}"))
	case p.accept("["):
		return p.list()
	case p.accept("#"):
		return p.mapping(t)
	case p.accept("<<"):
		return p.binary()
	case t.kind == symbolToken && openers[t.text]:
		p.unsupported(t)
	default:
		p.misplaced()
	}
	return nil
}

// strings reads adjacent strings as one.
func (p *parser) strings() string {
	var text strings.Builder
	for p.token.kind == stringToken {
		text.WriteString(p.token.text)
		p.next()
	}
	return text.String()
}

// stringTerm returns a list of characters.
func stringTerm(text string) etf.Term {
	var list etf.List
	latin1 := make([]byte, 0, len(text))
	for _, c := range text {
		list = append(list, int64(c))
		if c <= 0xff {
			latin1 = append(latin1, byte(c))
		}
	}
	if len(list) > 0 && len(latin1) == len(list) {
		return etf.String(latin1)
	}
	return list
}
