package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
)

// Text from a node is escaped before it reaches the terminal.
func TestTextOf(t *testing.T) {
	evil := "\x1b[2J\r"
	r := &idhttp.Report{Node: evil, Version: evil, Generators: []idhttp.GeneratorReport{{Name: evil, Reason: evil,
		Info: idserver.Info{Format: evil, WorkerError: evil, WorkerFrom: evil}}}}
	var b strings.Builder
	err := show(&b, false, "", r, textOf(r, time.Now()))
	if text := b.String(); err != nil || strings.ContainsAny(text, "\x1b\r") || !strings.Contains(text, "the store: ") {
		t.Errorf("%q, %v", text, err)
	}
}

// A mark behind the clock is shown as idle, unless the node is not ready.
func TestLead(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		mark  time.Duration
		ready bool
		want  string
	}{{3 * time.Second, true, "3s"}, {-time.Hour, true, "idle"}, {-time.Hour, false, "-1h0m0s"}} {
		g := idhttp.GeneratorReport{Info: idserver.Info{Mark: now.Add(test.mark).UnixMilli()}, Ready: test.ready}
		if lead := rowOf(&g, now.Truncate(time.Millisecond))[8]; lead != test.want {
			t.Errorf("%+v: %s", test, lead)
		}
	}
}

// A name that another node has written to etcd is escaped too.
func TestPrintWorkers(t *testing.T) {
	var b strings.Builder
	if err := printWorkers(&b, []workers.Entry{{Value: workers.Value{Name: "\x1b[2J\r"}}}); err != nil ||
		strings.ContainsAny(b.String(), "\x1b\r") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
