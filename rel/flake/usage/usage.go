// Package usage describes a table of commands to people and shells: it writes help, a
// manual page, and scripts that complete commands and flags in bash, zsh and fish. All
// of it is generated from the table and the flags, so none of it is maintained by hand.
//
// Start at [Command].
package usage

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Command is a row of the table. The first row is flake itself, and has no name.
//
// In a flag's usage text, the word in backquotes stands for the flag's value: FILE stands for a
// file, and a|b for one of these words. In Args, lower-case words are literal, and COMMAND stands
// for the name of a command.
type Command struct {
	Name  string
	Args  string // the arguments after the flags
	Does  string // one line, a predicate whose subject is the command
	More  string // more paragraphs, or empty
	Flags *flag.FlagSet
}

// Line returns the command's synopsis.
func (c *Command) Line() string {
	words := []string{"flake", c.Name, "", c.Args}
	if len(c.flags()) > 0 {
		words[2] = "[FLAGS]"
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

func (c *Command) sentence() string { return strings.TrimSpace("flake "+c.Name) + " " + c.Does + "." }

var literals = regexp.MustCompile(`\b[a-z][a-z-]*\b`)

// words returns the command's possible arguments; for flake itself, all commands.
func (c *Command) words(all []Command) []string {
	if c.Name == "" || strings.Contains(c.Args, "COMMAND") {
		var names []string
		for _, c := range all[1:] {
			names = append(names, c.Name)
		}
		return names
	}
	return literals.FindAllString(c.Args, -1)
}

// An option is a flag as help shows it.
type option struct {
	name, does string
	value      string   // the placeholder of the value; empty: the flag takes none
	words      []string // the possible values, or nil
	def        string   // the default, if it is worth showing
}

func (c *Command) flags() (all []option) {
	c.Flags.VisitAll(func(f *flag.Flag) {
		o := option{name: "-" + f.Name}
		o.value, o.does = flag.UnquoteUsage(f)
		if strings.Contains(o.value, "|") {
			o.words = strings.Split(o.value, "|")
		}
		if !slices.Contains([]string{"", "0", "0s", "false"}, f.DefValue) {
			o.def = f.DefValue
		}
		all = append(all, o)
	})
	return all
}

// Help returns a command's synopsis, what it does, and its flags; for flake itself, also the
// table of commands.
func Help(all []Command, c *Command) string {
	var text strings.Builder
	if c.Name == "" {
		table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
		for _, c := range all {
			fmt.Fprintf(table, "%s\t%s\n", c.Line(), c.Does)
		}
		table.Flush()
		fmt.Fprint(&text, "\nFor a command's flags: flake help COMMAND. The flags of flake itself:\n\n")
	} else {
		fmt.Fprintf(&text, "%s\n\n%s\n", c.Line(), c.sentence())
		if c.More != "" {
			fmt.Fprintf(&text, "\n%s\n", c.More)
		}
		if len(c.flags()) > 0 {
			fmt.Fprint(&text, "\nFlags:\n\n")
		}
	}
	for _, o := range c.flags() {
		fmt.Fprintf(&text, "  %s\n    \t%s\n", strings.TrimSpace(o.name+" "+o.value), o.text())
	}
	return text.String()
}

func (o *option) text() string {
	if o.def == "" {
		return o.does
	}
	return o.does + " (default " + o.def + ")"
}

// A Section is a part of the manual page after the commands.
type Section struct{ Title, Text string }

// Man returns the page flake(1), in the macros of man(7).
func Man(all []Command, version, about string, more []Section) string {
	var p strings.Builder
	fmt.Fprintf(&p, ".TH FLAKE 1 \"\" %s \"User Commands\"\n.SH NAME\nflake \\- %s\n.SH SYNOPSIS\n.nf\n",
		argument("flake "+version), roff(about))
	for _, c := range all {
		fmt.Fprintf(&p, "%s\n", roff(c.Line()))
	}
	fmt.Fprint(&p, ".fi\n.SH COMMANDS\n")
	for _, c := range all {
		fmt.Fprintf(&p, ".SS %s\n%s\n", argument(c.Line()), roff(c.sentence()))
		if c.More != "" {
			fmt.Fprintf(&p, ".PP\n%s\n", strings.ReplaceAll(roff(c.More), "\n\n", "\n.PP\n"))
		}
		for _, o := range c.flags() {
			fmt.Fprintf(&p, ".TP\n\\fB%s\\fR \\fI%s\\fR\n%s\n", roff(o.name), roff(o.value), roff(o.text()))
		}
	}
	for _, s := range more {
		fmt.Fprintf(&p, ".SH %s\n%s\n", argument(s.Title), roff(s.Text))
	}
	return p.String()
}

var escapes = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "\n.", "\n\\&.")

// roff escapes lines of text.
func roff(text string) string {
	if text = escapes.Replace(text); strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// argument quotes text as one argument of a macro.
func argument(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
