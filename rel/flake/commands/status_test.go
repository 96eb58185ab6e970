package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/idserver/idhttp"
)

// Nothing of what a node tells reaches the terminal as it is.
func TestTextOf(t *testing.T) {
	evil := "\x1b[2J\r"
	r := &idhttp.Report{Node: evil, Version: evil, Generators: []idhttp.GeneratorReport{{Name: evil, Reason: evil, Format: evil, WorkerError: evil, WorkerFrom: evil}}}
	text := textOf(r, time.Now())
	if strings.ContainsAny(text, "\x1b\r") || !strings.Contains(text, "etcd: ") {
		t.Errorf("%q", text)
	}
}

// Nor does a name that another node has put into etcd.
func TestPrintWorkers(t *testing.T) {
	var b strings.Builder
	if err := printWorkers(&b, []workers.Entry{{Value: workers.Value{Name: "\x1b[2J\r"}}}); err != nil || strings.ContainsAny(b.String(), "\x1b\r") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
