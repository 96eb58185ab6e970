package console

import (
	"fmt"
	"strings"

	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// depth is how deep into values, and how far into lists, erl prints.
const depth = 30

// Exception is what a function raises instead of returning a value.
type Exception struct {
	Class  string // "error", "exit" or "throw"
	Reason etf.Term

	call *call // in which it was raised
}

// call is a call as an error shows it. In the module erlang, functions go without it.
type call struct {
	module, function etf.Atom
	args             []etf.Term
	command          bool // no module: it could have been a command of the prompt
}

// Error returns what the prompt shows, which may be several lines.
func (e *Exception) Error() string { return string(e.text(defaultWidth)) }

// name returns the function's name as in fun expressions, without the arity.
func (c *call) name() string {
	if c.module == "erlang" {
		return atom(c.function)
	}
	return atom(c.module) + ":" + atom(c.function)
}

func atom(a etf.Atom) string { return string(appendTerm(nil, a, defaultWidth)) }

// text returns what the shell prints on lines of this width, without the last line end.
func (e *Exception) text(width int) []byte {
	text := []byte("** exception " + e.Class + ": ")
	c := e.call
	switch {
	case c == nil && e.Class == "error":
		return appendReason(text, e.Reason, width)
	case c == nil:
		return appendTerm(text, e.Reason, width)
	case e.Class != "error":
		text = appendTerm(text, e.Reason, width)
		return fmt.Appendf(text, "\n     in function  %s/%d", c.name(), len(c.args))
	case e.Reason == etf.Atom("undef") && c.command:
		return fmt.Appendf(text, "undefined shell command %s/%d", c.name(), len(c.args))
	case e.Reason == etf.Atom("undef"):
		return fmt.Appendf(text, "undefined function %s:%s/%d", atom(c.module), atom(c.function), len(c.args))
	case e.Reason == etf.Atom("function_clause"):
		return appendCall(append(text, "no function clause matching "...), c, width)
	}
	text = appendReason(text, e.Reason, width)
	text = fmt.Appendf(text, "\n     in function  %s/%d", c.name(), len(c.args))
	return appendCall(append(text, "\n        called as "...), c, width)
}

// reasons holds the words for reasons that are atoms.
var reasons = map[etf.Term]string{
	etf.Atom("badarg"):        "bad argument",
	etf.Atom("badarith"):      "an error occurred when evaluating an arithmetic expression",
	etf.Atom("noproc"):        "no such process or port",
	etf.Atom("system_limit"):  "a system limit has been reached",
	etf.Atom("timeout_value"): "bad receive timeout value",
}

// pairs holds the words for reasons that are a tuple of this atom and a value.
var pairs = map[etf.Term]string{
	etf.Atom("badarg"):   "bad argument: ",
	etf.Atom("badmatch"): "no match of right hand side value ",
	etf.Atom("badkey"):   "bad key: ",
	etf.Atom("badmap"):   "bad map: ",
	etf.Atom("badfun"):   "bad function ",
}

func appendReason(text []byte, reason etf.Term, width int) []byte {
	switch r := reason.(type) {
	case etf.Atom:
		if words, ok := reasons[r]; ok {
			return append(text, words...)
		}
	case etf.Tuple:
		if len(r) != 2 {
			break
		}
		if tag, ok := r[0].(etf.Atom); ok && pairs[tag] != "" {
			return appendTerm(append(text, pairs[tag]...), r[1], width)
		}
	}
	return appendTerm(text, reason, width)
}

// appendTerm appends a term to text, on its last line.
func appendTerm(text []byte, t etf.Term, width int) []byte {
	return erltext.Pretty(text, t, column(text), width, depth)
}

// appendCall appends a call with its arguments, which break into lines like a list.
func appendCall(text []byte, c *call, width int) []byte {
	text = append(text, c.name()...)
	start := len(text)
	text = appendTerm(text, etf.List(c.args), width)
	if text[start] == '[' {
		text[start], text[len(text)-1] = '(', ')'
		return text
	}
	text = append(text[:start], '(') // the arguments are numbers that could be text
	for i, arg := range c.args {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendTerm(text, arg, width)
	}
	return append(text, ')')
}

// column returns the column after the last character.
func column(text []byte) int {
	last := string(text[strings.LastIndexByte(string(text), '\n')+1:])
	return len([]rune(last)) + 1
}
