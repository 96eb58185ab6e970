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
	where := e.File
	if where == "" {
		where = "config"
	}
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, e.Line)
	}
	what := e.Key
	if e.Value != "" {
		what += " = " + e.Value
	}
	if what != "" {
		where += ": " + what
	}
	return where + ": " + e.Want
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
