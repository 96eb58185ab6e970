// Package console provides a prompt like that of erl, the Erlang shell, for a given set of functions.
//
// Start at [New] and [Console.Run], or at [Eval] for a single answer. Users type terms, calls to the functions,
// variables and matches. Package golang.org/x/term provides line editing and history. A Console is an io.Writer for
// other output to the terminal, such as logs.
//
// Operators, funs, records, job control (Ctrl-G), v(N) and erl commands that help() does not list are not supported.
package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// Options configure a Console.
type Options struct {
	Node      string   // the name in the prompt
	In        *os.File // a terminal
	Out       io.Writer
	Functions Functions
	Help      []Section // listed by help() after the prompt's own commands
}

// Section is a group of functions in the text of help().
type Section struct {
	Title     string
	Functions []Help
}

// Help is the line for one function.
type Help struct{ Call, Does string }

// Console is a prompt.
type Console struct {
	options   Options
	evaluator evaluator
	editor    editor
	number    int        // of the current expression, shown in the prompt
	pending   string     // text read but not yet parsed
	answers   []answer   // the latest answers
	mu        sync.Mutex // guards out
	out       io.Writer  // during Run, the terminal's editor
}

// editor reads lines.
type editor interface {
	readLine(prompt string) (string, error)
	width() int
}

// answer is an expression and its value.
type answer struct {
	number int
	source string
	value  etf.Term
}

const (
	maxAnswers    = 20   // how many answers h() lists, as in erl
	maxValueBytes = 4096 // how much of a value is printed
)

// errQuit ends Run without an error.
var errQuit = errors.New("console: quit")

const ok = etf.Atom("ok")

// New returns a Console. It reads nothing before Run.
func New(options Options) *Console {
	c := &Console{number: 1, out: options.Out}
	c.evaluator = evaluator{options.Functions, map[string]etf.Term{}, map[string]builtin{}}
	own := Section{Title: "shell internal commands"}
	for _, b := range []struct {
		name, args, does string // args has one letter for each argument
		run              builtin
	}{
		{"b", "", "list the variables and their values", c.showBindings},
		{"f", "", "forget all variables", c.forget},
		{"f", "X", "forget the variable X", c.forget},
		{"h", "", "list the last expressions and their values", c.history},
		{"help", "", "list the functions", c.help},
		{"q", "", "stop the node", func([]erltext.Expr) (etf.Term, error) { return ok, errQuit }},
	} {
		c.evaluator.commands[fmt.Sprintf("%s/%d", b.name, len(b.args))] = b.run
		own.Functions = append(own.Functions, Help{fmt.Sprintf("%s(%s)", b.name, b.args), b.does})
	}
	options.Help = append([]Section{own}, options.Help...)
	c.options = options
	return c
}

// Write prints text, above the line being edited if there is one.
func (c *Console) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(text)
}

func (c *Console) setOut(out io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = out
}

// Run serves the prompt. It returns nil after q(), a second Ctrl-C or the end of the input, and an error when ctx
// ends. It does not wait for a call that is still running.
func (c *Console) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t, err := openTerminal(ctx, c.options, func() { cancel(errQuit) })
	if err != nil {
		return err
	}
	defer t.close()
	c.setOut(t)
	defer c.setOut(c.options.Out)
	return c.serve(ctx, t)
}

func (c *Console) serve(ctx context.Context, e editor) error {
	c.editor = e
	for {
		err := c.step(ctx)
		switch {
		case errors.Is(err, errQuit), errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// step reads and evaluates the input up to the next full stop.
func (c *Console) step(ctx context.Context) error {
	exprs, source, err := c.read()
	var value etf.Term
	if err == nil {
		value, err = c.evaluator.all(ctx, exprs)
		c.number++
	}
	var failed *erltext.Error
	var raised *Exception
	switch {
	case errors.As(err, &failed):
		fmt.Fprintf(c, "* %v\n", failed)
		return nil
	case errors.As(err, &raised):
		fmt.Fprintf(c, "%s\n", c.cut(raised.text(c.editor.width())))
		return nil
	case err != nil && value == nil:
		return err
	}
	fmt.Fprintf(c, "%s\n", c.text("", value))
	c.answers = append(c.answers, answer{c.number - 1, source, value})
	c.answers = c.answers[max(0, len(c.answers)-maxAnswers):]
	return err
}

// read returns the next expressions and their text.
func (c *Console) read() ([]erltext.Expr, string, error) {
	for {
		before := c.pending
		exprs, rest, err := erltext.Parse(before)
		failed, _ := err.(*erltext.Error)
		if exprs != nil || failed != nil && !failed.Incomplete {
			c.pending = rest
			return exprs, strings.TrimSpace(strings.TrimSuffix(before, rest)), err
		}
		line, err := c.editor.readLine(fmt.Sprintf("(%s)%d> ", c.options.Node, c.number))
		if err != nil {
			return nil, "", err
		}
		c.pending += line + "\n"
	}
}

// text returns the prefix followed by the text of the value.
func (c *Console) text(prefix string, value etf.Term) []byte {
	return c.cut(etf.Pretty([]byte(prefix), value, c.editor.width()))
}

// cut shortens text that is too long for a terminal.
func (c *Console) cut(text []byte) []byte {
	if len(text) <= maxValueBytes {
		return text
	}
	return append(bytes.ToValidUTF8(text[:maxValueBytes], nil), "..."...)
}

func (c *Console) showBindings([]erltext.Expr) (etf.Term, error) {
	for _, name := range slices.Sorted(maps.Keys(c.evaluator.bindings)) {
		fmt.Fprintf(c, "%s\n", c.text(name+" = ", c.evaluator.bindings[name]))
	}
	return ok, nil
}

func (c *Console) forget(args []erltext.Expr) (etf.Term, error) {
	if len(args) == 0 {
		clear(c.evaluator.bindings)
		return ok, nil
	}
	variable, isVariable := args[0].(*erltext.Variable)
	if !isVariable {
		return nil, &Exception{Class: "error", Reason: etf.Atom("badarg")}
	}
	delete(c.evaluator.bindings, variable.Name)
	return ok, nil
}

func (c *Console) history([]erltext.Expr) (etf.Term, error) {
	for _, a := range c.answers {
		fmt.Fprintf(c, "%d: %s\n%s\n", a.number, strings.TrimSuffix(a.source, "."), c.text("-> ", a.value))
	}
	return ok, nil
}

func (c *Console) help([]erltext.Expr) (etf.Term, error) {
	var text strings.Builder
	for _, section := range c.options.Help {
		fmt.Fprintf(&text, "** %s **\n", section.Title)
		for _, f := range section.Functions {
			fmt.Fprintf(&text, "%-10s -- %s\n", f.Call, f.Does)
		}
	}
	io.WriteString(c, text.String())
	return ok, nil
}
