package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"

	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// Functions calls Module:Function(Args). If the function does not exist, the error is an *Exception of class error with
// the reason undef.
type Functions func(module, function etf.Atom, args []etf.Term) (etf.Term, error)

// defaultWidth is the line width without a terminal.
const defaultWidth = 80

// Eval evaluates the expressions before the first full stop and returns the text of the last value. The prompt's own
// commands are not available. Errors in the text are of type *erltext.Error; exceptions that a function raises are of
// type *Exception.
func Eval(ctx context.Context, functions Functions, text string) ([]byte, error) {
	exprs, _, err := erltext.Parse(text)
	switch {
	case err != nil:
		return nil, err
	case len(exprs) == 0:
		return nil, erltext.Position{Line: 1, Column: 1}.Errorf("nothing to evaluate")
	}
	e := evaluator{functions: functions, bindings: map[string]etf.Term{}}
	value, err := e.all(ctx, exprs)
	if err != nil {
		return nil, err
	}
	return etf.Pretty(nil, value, defaultWidth), nil
}

type evaluator struct {
	functions Functions
	bindings  map[string]etf.Term
	commands  map[string]builtin // by name/arity
}

// builtin runs a command of the prompt.
type builtin func(args []erltext.Expr) (etf.Term, error)

// all evaluates expressions and returns the value of the last. If one fails, no variable is bound.
func (e *evaluator) all(ctx context.Context, exprs []erltext.Expr) (value etf.Term, err error) {
	before := maps.Clone(e.bindings)
	for _, expr := range exprs {
		if value, err = e.value(ctx, expr); err != nil {
			e.bindings = before
			break
		}
	}
	return value, err
}

func (e *evaluator) value(ctx context.Context, expr erltext.Expr) (etf.Term, error) {
	switch x := expr.(type) {
	case *erltext.Literal:
		return x.Term, nil
	case *erltext.Variable:
		value, bound := e.bindings[x.Name]
		if !bound {
			return nil, x.Errorf("variable '%s' is unbound", x.Name)
		}
		return value, nil
	case *erltext.Match:
		value, err := e.value(ctx, x.Value)
		if err == nil && !e.match(x.Pattern, value) {
			err = &Exception{Class: "error", Reason: etf.Tuple{etf.Atom("badmatch"), value}}
		}
		return value, err
	case *erltext.Compound:
		var failed error
		left := newBudget()
		term, err := x.Term(func(part erltext.Expr) (value etf.Term, err error) {
			if value, failed = e.value(ctx, part); failed == nil {
				failed = left.take(value, 2)
			}
			return value, failed
		})
		if err != failed {
			err = &Exception{Class: "error", Reason: etf.Atom("badarg")}
		}
		return term, err
	}
	return e.call(ctx, expr.(*erltext.Call))
}

// MaxBytes bounds the binaries, strings and integers in a term that an expression builds. Its elements
// and depth have the limits of package etf.
const MaxBytes = 16 << 20

// budget is what a term that an expression builds may still contain. A variable takes no memory when it
// is used again, but the term's text and bytes do.
type budget struct{ elements, bytes int }

func newBudget() *budget { return &budget{etf.MaxElements, MaxBytes} }

// take takes the parts of t, which is at the given depth. It returns an exception if too little is left.
func (b *budget) take(t etf.Term, depth int) error {
	var parts []etf.Term
	switch t := t.(type) {
	case etf.List:
		parts = t
	case etf.ImproperList:
		parts = append(t.Elements[:len(t.Elements):len(t.Elements)], t.Tail)
	case etf.Tuple:
		parts = t
	case etf.Map:
		for _, pair := range t {
			parts = append(parts, pair.Key, pair.Value)
		}
	case etf.String:
		b.bytes -= len(t)
	case []byte:
		b.bytes -= len(t)
	case etf.Bitstring:
		b.bytes -= len(t.Bytes)
	case *big.Int:
		b.bytes -= t.BitLen() / 8
	}
	b.elements--
	if b.elements < 0 || b.bytes < 0 || depth > etf.MaxDepth {
		return &Exception{Class: "error", Reason: etf.Atom("system_limit")}
	}
	for _, part := range parts {
		if err := b.take(part, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// match binds the variables of a pattern to parts of a value and reports whether the value matches.
func (e *evaluator) match(pattern erltext.Expr, value etf.Term) bool {
	switch x := pattern.(type) {
	case *erltext.Literal:
		return erltext.Equal(x.Term, value)
	case *erltext.Variable:
		if x.Name == "_" {
			return true
		}
		if bound, ok := e.bindings[x.Name]; ok {
			return erltext.Equal(bound, value)
		}
		e.bindings[x.Name] = value
		return true
	case *erltext.Match:
		return e.match(x.Pattern, value) && e.match(x.Value, value)
	case *erltext.Compound:
		values, ok := x.Values(value)
		for i := 0; ok && i < len(x.Parts); i++ {
			ok = e.match(x.Parts[i], values[i])
		}
		return ok
	}
	return false
}

// call calls a command of the prompt or one of the functions. The default module is erlang.
func (e *evaluator) call(ctx context.Context, x *erltext.Call) (etf.Term, error) {
	if run := e.commands[fmt.Sprintf("%s/%d", x.Function, len(x.Args))]; run != nil && x.Module == "" {
		return run(x.Args)
	}
	args := make([]etf.Term, len(x.Args))
	var value etf.Term
	var err error
	left := newBudget()
	for i, arg := range x.Args {
		if args[i], err = e.value(ctx, arg); err == nil {
			err = left.take(args[i], 1)
		}
		if err != nil {
			return nil, err
		}
	}
	done := make(chan struct{})
	go func() { // an endless call must not keep the prompt from ending
		value, err = e.functions(cmp.Or(x.Module, erlang), x.Function, args)
		close(done)
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-done:
	}
	if err == nil {
		return value, nil
	}
	raised := Exception{Class: "error", Reason: []byte(err.Error())}
	if e, ok := errors.AsType[*Exception](err); ok {
		raised = *e
	}
	raised.call, raised.args = x, args
	return nil, &raised
}

// Exception is an exception that a function raised instead of returning a value.
type Exception struct {
	Class  string // error, exit or throw
	Reason etf.Term

	call *erltext.Call // nil if no call raised it
	args []etf.Term    // of the call
}

const erlang = etf.Atom("erlang")

// Error returns the text that the prompt prints. It can have several lines.
func (e *Exception) Error() string { return string(e.text(defaultWidth)) }

// text returns the text of the exception, for lines of the given width.
func (e *Exception) text(width int) []byte {
	text := []byte("** exception " + e.Class + ": ")
	c := e.call
	switch {
	case c == nil:
		return appendReason(text, e, width)
	case e.Class == "error" && e.Reason == etf.Atom("undef") && c.Module == "":
		return fmt.Appendf(text, "undefined shell command %s/%d", nameOf(c), len(c.Args))
	case e.Class == "error" && e.Reason == etf.Atom("undef"):
		return fmt.Appendf(text, "undefined function %s/%d", nameOf(c), len(c.Args))
	}
	text = appendReason(text, e, width)
	text = fmt.Appendf(text, "\n     in function  %s/%d", nameOf(c), len(c.Args))
	if e.Class != "error" {
		return text
	}
	text = fmt.Appendf(text, "\n        called as %s(", nameOf(c))
	for i, arg := range e.args {
		if i > 0 {
			text = append(text, ',')
		}
		text = etf.Pretty(text, arg, width)
	}
	return append(text, ')')
}

// nameOf returns Module:Function, or only the function if the module is erlang.
func nameOf(c *erltext.Call) []byte {
	var name []byte
	if c.Module != "" && c.Module != erlang {
		name = append(etf.Pretty(nil, c.Module, defaultWidth), ':')
	}
	return etf.Pretty(name, c.Function, defaultWidth)
}

// reasons holds the text for each reason. If a reason is a tuple of the atom and a value, the value follows the text.
var reasons = map[etf.Term]string{
	etf.Atom("badarg"):          "bad argument",
	etf.Atom("badmatch"):        "no match of right hand side value",
	etf.Atom("function_clause"): "no function clause matching",
	etf.Atom("noproc"):          "no such process or port",
	etf.Atom("system_limit"):    "a system limit has been reached",
}

func appendReason(text []byte, e *Exception, width int) []byte {
	if atom, ok := e.Reason.(etf.Atom); ok && e.Class == "error" && reasons[atom] != "" {
		return append(text, reasons[atom]...)
	}
	if t, ok := e.Reason.(etf.Tuple); ok && len(t) == 2 && e.Class == "error" {
		if atom, ok := t[0].(etf.Atom); ok && reasons[atom] != "" {
			return etf.Pretty(append(text, reasons[atom]+" "...), t[1], width)
		}
	}
	return etf.Pretty(text, e.Reason, width)
}
