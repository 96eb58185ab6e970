package main

import (
	"strings"
	"testing"
)

// A missing program is reported before anything is measured, if a section needs it.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for only, want := range map[string]bool{"ids,http": true, "ids": false} {
		err := missing(strings.Split(only, ","))
		if err == nil || !strings.Contains(err.Error(), "erl is missing: apt-get install erlang-base") {
			t.Fatal(err)
		}
		if got := strings.Contains(err.Error(),
			"wrk is missing: apt-get install wrk, or leave out http: -only ids"); got != want {
			t.Errorf("-only %s: %v", only, err)
		}
	}
}
