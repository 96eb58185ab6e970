package erltext

import "github.com/flake-go/flake/node/etf"

// atomOrCall reads an atom or a call.
func (p *parser) atomOrCall() Expr {
	t := p.token
	p.next()
	call := &Call{Function: etf.Atom(t.text), Position: t.Position}
	switch {
	case p.accept("("):
	case p.accept(":"):
		call.Module, call.Function = call.Function, etf.Atom(p.token.text)
		switch {
		case p.token.kind != atomToken && p.startsExpr():
			p.unsupported(p.token)
			return nil
		case p.token.kind != atomToken:
			p.misplaced()
			return nil
		}
		p.next()
		if !p.accept("(") {
			p.forbid(t.Position, "illegal expression")
			if p.token.is(":") {
				p.misplaced()
			}
			return call
		}
	default:
		if p.token.is("#") {
			p.unsupported(p.token)
		}
		return &Literal{etf.Atom(t.text)}
	}
	call.Args = p.sequence(")")
	return call
}

// startsExpr reports whether an expression may begin with the next token.
func (p *parser) startsExpr() bool {
	switch p.token.kind {
	case endToken, dotToken:
		return false
	case symbolToken:
		switch p.token.text {
		case "(", "[", "{", "<<", "#":
			return true
		}
		return openers[p.token.text]
	}
	return true
}

// sequence reads the expressions between what opens and what closes them.
func (p *parser) sequence(closer string) (exprs []Expr) {
	if p.accept(closer) {
		return nil
	}
	exprs = append(exprs, p.expr())
	for p.accept(",") {
		exprs = append(exprs, p.expr())
	}
	p.expect(closer)
	return exprs
}

func (p *parser) list() Expr {
	if p.accept("]") {
		return &Literal{etf.List(nil)}
	}
	parts := []Expr{p.expr()}
	if p.token.is("||") {
		p.unsupported(p.token)
	}
	for p.accept(",") {
		parts = append(parts, p.expr())
	}
	tail := Expr(&Literal{etf.List(nil)})
	if p.accept("|") {
		tail = p.expr()
	}
	p.expect("]")
	return compound(List, append(parts, tail))
}

// mapping reads a map, after its #.
func (p *parser) mapping(start token) Expr {
	if p.token.kind == atomToken { // a record
		p.next()
		if p.token.is("{") || p.token.is(".") {
			p.unsupported(start)
		}
	}
	p.expect("{")
	var parts []Expr
	for !p.accept("}") && p.err == nil {
		if len(parts) > 0 {
			p.expect(",")
		}
		parts = append(parts, p.expr())
		if p.token.is(":=") {
			p.forbid(p.token.Position, "only association operators '=>' are allowed in map construction")
			p.next()
		} else {
			p.expect("=>")
		}
		parts = append(parts, p.expr())
	}
	return compound(Map, parts)
}
