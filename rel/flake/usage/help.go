package usage

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Help is how a command of the table is called, what it does, and its flags; of flake
// itself also the table.
func Help(all []Command, c *Command) string {
	var text strings.Builder
	if c.Name == "" {
		table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
		for _, c := range all {
			fmt.Fprintf(table, "%s\t%s\n", c.Line(), c.Does)
		}
		table.Flush()
		fmt.Fprint(&text, "\nFor the flags of a command: flake help COMMAND. Those of flake itself:\n\n")
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

// text is what a flag does, and its default.
func (o *option) text() string {
	if o.def == "" {
		return o.does
	}
	return o.does + " (default " + o.def + ")"
}
