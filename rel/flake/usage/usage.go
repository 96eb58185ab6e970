// Package usage writes what people and shells read of a table of commands: help, a
// manual page, and scripts that complete commands and flags in bash, zsh and fish. All
// of it is made of the table and the flags, so that none of it has to be kept.
//
// Start at [Command].
package usage

import (
	"flag"
	"regexp"
	"slices"
	"strings"
)

// A Command is a row of the table. The first row is flake itself, without a name.
//
// In what a flag says of itself, the word in backquotes stands for its value: FILE is a
// file, and a|b is one of these words. In Args, words in small letters are written as
// they are; COMMAND is the name of one.
type Command struct {
	Name  string
	Args  string // after the flags
	Does  string // in a line, with the command as its subject
	More  string // in paragraphs, or empty
	Flags *flag.FlagSet
}

// Line is how the command is called.
func (c *Command) Line() string {
	words := []string{"flake", c.Name, "", c.Args}
	if len(c.flags()) > 0 {
		words[2] = "[FLAGS]"
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// sentence is what the command does.
func (c *Command) sentence() string { return strings.TrimSpace("flake "+c.Name) + " " + c.Does + "." }

var literals = regexp.MustCompile(`\b[a-z][a-z-]*\b`)

// words are what the command's arguments may be, of which the node's are all commands.
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

// An option is a flag as it is shown.
type option struct {
	name, does string
	value      string   // what stands for it; empty: it takes none
	words      []string // that the value may be
	def        string   // what it is without the flag, if it is worth saying
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
