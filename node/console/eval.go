package console

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/flake-go/flake/node/etf"
)

// Eval evaluates text, expressions that each end in a full stop, of which the last may be left out, and
// prints the value of each to out as the prompt does. It ends at the first that fails; the error has the
// words of the prompt.
func Eval(ctx context.Context, functions Functions, text string, out io.Writer) error {
	e := evaluator{functions: functions, bindings: map[string]etf.Term{}}
	if text = strings.TrimSpace(text); !strings.HasSuffix(text, ".") {
		text += "."
	}
	for {
		exprs, rest, err := etf.Parse(text, false)
		if err != nil || len(exprs) == 0 {
			return err
		}
		if err := e.unbound(exprs); err != nil {
			return err
		}
		value, err := e.all(ctx, exprs)
		if raised := (*Exception)(nil); errors.As(err, &raised) {
			return errors.New(string(raised.text()))
		}
		if err != nil {
			return err
		}
		if _, err := out.Write(append(etf.Pretty(nil, value, 1, width, depth), '\n')); err != nil {
			return err
		}
		text = rest
	}
}
