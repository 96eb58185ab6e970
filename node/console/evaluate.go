package console

import (
	"context"
	"errors"
	"maps"

	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// Eval returns the value of the text before the first full stop, without the commands of a prompt, printed in
// full as a prompt prints it. An error in the text is an *erltext.Error; what a function raises is an
// *Exception.
func Eval(ctx context.Context, functions Functions, text string) ([]byte, error) {
	exprs, _, err := erltext.Parse(text, false)
	switch {
	case err != nil:
		return nil, err
	case len(exprs) == 0:
		return nil, erltext.Position{Line: 1, Column: 1}.Errorf("nothing to evaluate")
	}
	e := evaluator{functions: functions, bindings: map[string]etf.Term{}}
	if err := e.unbound(exprs); err != nil {
		return nil, err
	}
	value, err := e.all(ctx, exprs)
	if err != nil {
		return nil, err
	}
	return erltext.Pretty(nil, value, 1, defaultWidth, -1), nil
}

// evaluator evaluates expressions.
type evaluator struct {
	functions Functions
	bindings  map[string]etf.Term
	commands  map[command]func(args []erltext.Expr) (etf.Term, error)
	history   []answered // the last ones
}

// command is the name of a command and the number of its arguments.
type command struct {
	name  etf.Atom
	arity int
}

type answered struct {
	number int
	source string
	value  etf.Term
}

const maxHistory = 20 // expressions that h() lists, as erl

func (e *evaluator) remember(number int, source string, value etf.Term) {
	e.history = append(e.history, answered{number, source, value})
	e.history = e.history[max(0, len(e.history)-maxHistory):]
}

// all evaluates expressions and returns the value of the last. If one fails, no variable is bound.
func (e *evaluator) all(ctx context.Context, exprs []erltext.Expr) (value etf.Term, err error) {
	before := maps.Clone(e.bindings)
	for _, expr := range exprs {
		if value, err = e.value(ctx, expr); err != nil {
			e.bindings = before
			return nil, err
		}
	}
	return value, nil
}

func (e *evaluator) value(ctx context.Context, expr erltext.Expr) (etf.Term, error) {
	switch x := expr.(type) {
	case *erltext.Literal:
		return x.Term, nil
	case *erltext.Variable:
		return e.bindings[x.Name], nil
	case *erltext.Match:
		value, err := e.value(ctx, x.Value)
		if err == nil && !e.match(x.Pattern, value) {
			err = &Exception{Class: "error", Reason: etf.Tuple{etf.Atom("badmatch"), value}}
		}
		return value, err
	case *erltext.Compound:
		values, err := e.values(ctx, x.Parts)
		if err != nil {
			return nil, err
		}
		return x.Term(values), nil
	}
	return e.call(ctx, expr.(*erltext.Call))
}

func (e *evaluator) values(ctx context.Context, exprs []erltext.Expr) ([]etf.Term, error) {
	values := make([]etf.Term, len(exprs))
	for i, expr := range exprs {
		var err error
		if values[i], err = e.value(ctx, expr); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// call calls a command of the prompt, or one of the functions, of the module erlang if none is named.
func (e *evaluator) call(ctx context.Context, x *erltext.Call) (etf.Term, error) {
	if run := e.commands[command{x.Function, len(x.Args)}]; run != nil && x.Module == "" {
		return run(x.Args)
	}
	args, err := e.values(ctx, x.Args)
	if err != nil {
		return nil, err
	}
	c := call{x.Module, x.Function, args, x.Module == ""}
	if c.command {
		c.module = "erlang"
	}
	type result struct {
		value etf.Term
		err   error
	}
	done := make(chan result, 1)
	go func() { // an endless call must not keep the prompt from ending
		value, err := e.functions.Call(c.module, c.function, args)
		done <- result{value, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-done:
		if r.err == nil {
			return r.value, nil
		}
		raised := Exception{Class: "error", Reason: []byte(r.err.Error())}
		if e := (*Exception)(nil); errors.As(r.err, &e) {
			raised = *e
		}
		raised.call = &c
		return nil, &raised
	}
}
