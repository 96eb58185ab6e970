package main

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// need are the programs that the sections run, and the packages of Debian that have them.
var need = []struct{ program, from, section string }{
	{"go", "golang", ""}, {"erl", "erlang-base", ""}, {"erlc", "erlang-base", ""}, {"epmd", "erlang-base", ""},
	{"wrk", "wrk", "http"},
}

// missing says which programs are not there that the sections need.
func missing(only []string) error {
	var errs []error
	for _, n := range need {
		if n.section != "" && !slices.Contains(only, n.section) {
			continue
		}
		if _, err := exec.LookPath(n.program); err != nil {
			hint := ""
			if n.section != "" {
				hint = fmt.Sprintf(", or leave out section %s: -only %s", n.section,
					strings.Join(slices.DeleteFunc(slices.Clone(only), func(s string) bool { return s == n.section }), ","))
			}
			errs = append(errs, fmt.Errorf("%s is missing: apt-get install %s%s", n.program, n.from, hint))
		}
	}
	return errors.Join(errs...)
}
