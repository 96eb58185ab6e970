package commands

import (
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/generators"
)

// A start that is refused does not wait. What several generators have in common is said once.
func TestTextOfCheck(t *testing.T) {
	r := generators.Report{
		Start:      generators.StartRefuses,
		Generators: []generators.GeneratorReport{{Configured: true}, {Name: "orders", Configured: true}},
		Findings: []generators.Finding{
			{Code: generators.CodeBackwards, Wrong: true, Text: "the clock is behind"},
			{Code: generators.CodeBackwards, Wrong: true, Generator: "orders", Text: "the clock is behind"},
			{Code: generators.CodeGenerator, Wrong: true, Generator: "events", Text: "one reason"},
			{Code: generators.CodeGenerator, Wrong: true, Generator: "users", Text: "another reason"},
		},
	}
	text := textOfCheck(r)
	if strings.Contains(text, "0s") || strings.Count(text, "the clock is behind") != 1 ||
		!strings.Contains(text, "generator orders: clock_running_backwards") || !strings.Contains(text, "another reason") {
		t.Error(text)
	}
	r.Start, r.Wait, r.Generators[1].Wait, r.Findings = generators.StartWaits, 2000, 2000, nil
	if text := textOfCheck(r); !strings.Contains(text, "0s\n") || strings.Count(text, "2s\n") != 2 {
		t.Error(text)
	}
}
