package usage

import (
	"fmt"
	"strings"
)

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

var (
	escapes = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "\n.", "\n\\&.")
	quotes  = strings.NewReplacer(`"`, `\(dq`)
)

// roff escapes lines of text.
func roff(text string) string {
	if text = escapes.Replace(text); strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// argument makes a text one argument of a macro.
func argument(text string) string { return `"` + quotes.Replace(roff(text)) + `"` }
