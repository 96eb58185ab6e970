package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Error is one fault of a configuration.
type Error struct {
	File  string // or another source of the value, such as a flag; empty if neither
	Line  int    // 0 if unknown
	Key   string // with its table: node.name
	Value string // as in the file; empty if the key is what is wrong
	Want  string // what is allowed
}

func (e *Error) Error() string {
	where := place(cmp.Or(e.File, "config"), e.Line)
	what := e.Key
	if e.Value != "" {
		what += " = " + e.Value
	}
	if what != "" {
		where += ": " + what
	}
	return where + ": " + e.Want
}

// place is where something is: in a line, if that is not 0.
func place(file string, line int) string {
	if line > 0 {
		return fmt.Sprintf("%s:%d", file, line)
	}
	return file
}

// join joins faults into one error, in the order of the file.
func join(faults []*Error) error {
	slices.SortStableFunc(faults, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	var errs []error
	for _, e := range faults {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}
