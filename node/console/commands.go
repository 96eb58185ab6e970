package console

import (
	"fmt"
	"io"
	"strings"

	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

const ok = etf.Atom("ok")

// commands returns the prompt's own commands.
func (c *Console) commands() map[command]func([]erltext.Expr) (etf.Term, error) {
	return map[command]func([]erltext.Expr) (etf.Term, error){
		{"f", 0}:    c.forgetAll,
		{"f", 1}:    c.forget,
		{"h", 0}:    c.history,
		{"help", 0}: c.help,
		{"q", 0}:    func([]erltext.Expr) (etf.Term, error) { return ok, errQuit },
	}
}

var ownHelp = Section{"shell internal commands", []Help{
	{"f()", "forget all variable bindings"},
	{"f(X)", "forget the binding of variable X"},
	{"h()", "history"},
	{"help()", "help info"},
	{"q()", "quit - stops the node"},
}}

func (c *Console) forgetAll([]erltext.Expr) (etf.Term, error) {
	clear(c.evaluate.bindings)
	return ok, nil
}

func (c *Console) forget(args []erltext.Expr) (etf.Term, error) {
	variable, isVariable := args[0].(*erltext.Variable)
	if !isVariable {
		return nil, &Exception{Class: "error", Reason: etf.Atom("function_clause"), call: &call{module: "shell", function: "f"}}
	}
	delete(c.evaluate.bindings, variable.Name)
	return ok, nil
}

// history prints the last expressions and their values.
func (c *Console) history([]erltext.Expr) (etf.Term, error) {
	for _, a := range c.evaluate.history {
		source := strings.TrimSuffix(strings.TrimSpace(a.source), ".")
		fmt.Fprintf(c, "%d: %s\n%s\n", a.number, source, appendTerm([]byte("-> "), a.value, c.input.width()))
	}
	return ok, nil
}

func (c *Console) help([]erltext.Expr) (etf.Term, error) {
	var text strings.Builder
	for _, section := range append([]Section{ownHelp}, c.options.Help...) {
		fmt.Fprintf(&text, "** %s **\n", section.Title)
		for _, f := range section.Functions {
			fmt.Fprintf(&text, "%-10s -- %s\n", f.Call, f.Does)
		}
	}
	io.WriteString(c, text.String())
	return etf.Atom("true"), nil // as erl
}

// completions returns what the tab key can complete, each up to its parenthesis.
func completions(sections []Section) (names []string) {
	for _, section := range append([]Section{ownHelp}, sections...) {
		for _, f := range section.Functions {
			name, _, _ := strings.Cut(f.Call, "(")
			names = append(names, name+"(")
		}
	}
	return names
}
