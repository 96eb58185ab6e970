package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// Functions calls functions.
type Functions interface {
	// Call calls Module:Function(Args). An error is an *Exception; if there is no such function, one of class
	// error with the reason undef.
	Call(module, function etf.Atom, args []etf.Term) (etf.Term, error)
}

// Options configure a Console.
type Options struct {
	Node      string    // name in the prompt; none if empty
	Banner    string    // printed first, with its own line end
	In        io.Reader // lines can be edited if it is the *os.File of a terminal
	Out       io.Writer // the same terminal
	Functions Functions
	Help      []Section // what help() lists besides the prompt's own commands
}

// Section is a group of functions in the text of help().
type Section struct {
	Title     string
	Functions []Help
}

// Help is a line about a function.
type Help struct{ Call, Does string }

// Console is a prompt.
type Console struct {
	options  Options
	evaluate evaluator
	input    input
	mu       sync.Mutex
	terminal *terminal // while Run uses one
	number   int       // of the expression in the prompt
	pending  string    // text read but not yet parsed
	ended    bool      // nothing more to read
}

// input is where lines come from.
type input interface {
	// readLine returns the next line without its end. more says that it continues an expression.
	readLine(ctx context.Context, prompt string, more bool) (string, error)
	// echo shows a prompt and the text after it, read with an earlier line.
	echo(prompt, text string)
	// width returns the number of columns.
	width() int
}

// What ends Run as the user wishes: q() and the BREAK menu.
var (
	errQuit  = errors.New("console: quit")
	errAbort = errors.New("console: abort")
)

// New returns a Console that does nothing yet.
func New(options Options) *Console {
	c := &Console{options: options, number: 1}
	c.evaluate = evaluator{functions: options.Functions, bindings: map[string]etf.Term{}, commands: c.commands()}
	return c
}

// Write prints text, above the line being edited if there is one.
func (c *Console) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.terminal != nil {
		return c.terminal.Write(text)
	}
	return c.options.Out.Write(text)
}

// Run serves the prompt until q(), the end of the input or abort in the BREAK menu, which all return nil, or
// until ctx is done. It then does not wait for a call under way.
func (c *Console) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	restore, err := c.open(ctx, cancel)
	if err != nil {
		return err
	}
	defer restore()
	io.WriteString(c, c.options.Banner)
	for {
		switch err := c.step(ctx); {
		case err == nil:
		case errors.Is(err, io.EOF):
			fmt.Fprintf(c, "*** Terminating erlang (%s)\n", cmp.Or(c.options.Node, "nonode@nohost"))
			return nil
		case errors.Is(err, errQuit), errors.Is(err, errAbort):
			return nil
		default:
			return err
		}
	}
}

// open starts reading, and returns what restores the previous state.
func (c *Console) open(ctx context.Context, cancel context.CancelCauseFunc) (restore func(), err error) {
	t, err := openTerminal(ctx, c.options, func() { cancel(errAbort) })
	if err != nil {
		return nil, err
	}
	if t == nil {
		c.input = newPipe(ctx, c.options)
		return func() {}, nil
	}
	t.complete = completions(c.options.Help)
	c.setTerminal(t)
	c.input = t
	return func() {
		c.setTerminal(nil)
		t.close()
	}, nil
}

func (c *Console) setTerminal(t *terminal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.terminal = t
}

func (c *Console) prompt() string {
	if c.options.Node == "" {
		return strconv.Itoa(c.number) + "> "
	}
	return fmt.Sprintf("(%s)%d> ", c.options.Node, c.number)
}

// step reads and evaluates the input up to the next full stop.
func (c *Console) step(ctx context.Context) error {
	exprs, source, err := c.read(ctx)
	var syntax *erltext.Error
	if errors.As(err, &syntax) {
		fmt.Fprintf(c, "* %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	err = c.answer(ctx, exprs, source)
	c.number++
	return err
}

// read returns the next expressions and their text.
func (c *Console) read(ctx context.Context) ([]erltext.Expr, string, error) {
	more := strings.TrimSpace(c.pending) != ""
	if more || c.ended {
		c.input.echo(c.prompt(), c.pending)
	}
	for ; ; more = true {
		before := c.pending
		exprs, rest, err := erltext.Parse(before, !c.ended)
		switch {
		case err == nil && len(exprs) == 0:
			return nil, "", io.EOF
		case err != erltext.ErrIncomplete:
			c.pending = rest
			return exprs, strings.TrimSuffix(before, rest), err
		}
		line, err := c.input.readLine(ctx, c.prompt(), more)
		c.pending += line
		switch {
		case err == io.EOF:
			c.ended = true
		case err != nil:
			return nil, "", err
		default:
			c.pending += "\n"
		}
	}
}

// answer evaluates expressions and prints the value of the last one, or an error.
func (c *Console) answer(ctx context.Context, exprs []erltext.Expr, source string) error {
	if err := c.evaluate.unbound(exprs); err != nil {
		fmt.Fprintf(c, "* %v\n", err)
		return nil
	}
	value, err := c.evaluate.all(ctx, exprs)
	var e *Exception
	switch {
	case errors.As(err, &e):
		c.Write(append(e.text(c.input.width()), '\n'))
		return nil
	case errors.Is(err, errQuit):
		value = ok
	case err != nil:
		return err
	}
	c.Write(append(erltext.Pretty(nil, value, 1, c.input.width(), depth), '\n'))
	c.evaluate.remember(c.number, source, value)
	return err
}
