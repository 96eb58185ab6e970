package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// need are the programs that the sections run, and the packages of Debian that have them.
var need = []struct {
	program, from string
	sections      []string // nil: all
}{
	{"go", "golang", nil}, {"erl", "erlang-base", nil}, {"erlc", "erlang-base", nil}, {"epmd", "erlang-base", nil},
	{"ip", "iproute2", overVethSections}, {"nsenter", "util-linux", overVethSections},
	{"wrk", "wrk", []string{"http"}},
}

var overVethSections = []string{"veth", "busy", "nodes", "latency"}

// missing says which programs are not there that the sections need, and whether the
// right to a network namespace is.
func missing(only []string) error {
	var errs []error
	for _, n := range need {
		if n.sections != nil && !wanted(only, n.sections) {
			continue
		}
		if _, err := exec.LookPath(n.program); err != nil {
			errs = append(errs, fmt.Errorf("%s is missing: apt-get install %s%s", n.program, n.from, without(only, n.sections)))
		}
	}
	if os.Geteuid() != 0 && wanted(only, overVethSections) {
		errs = append(errs, fmt.Errorf("a network namespace for the callers needs root%s", without(only, overVethSections)))
	}
	return errors.Join(errs...)
}

func wanted(only, sections []string) bool {
	return slices.ContainsFunc(only, func(s string) bool { return slices.Contains(sections, s) })
}

// without says how to leave out sections.
func without(only, sections []string) string {
	if sections == nil {
		return ""
	}
	rest := slices.DeleteFunc(slices.Clone(only), func(s string) bool { return slices.Contains(sections, s) })
	return fmt.Sprintf(", or leave out %s: -only %s", strings.Join(sections, ", "), strings.Join(rest, ","))
}
