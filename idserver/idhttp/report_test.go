package idhttp_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
	"github.com/flake-go/flake/node/traffic"
)

// The report contains the state and counts of the node, and leaves out what is unknown.
func TestInfo(t *testing.T) {
	s := newHundreds(t, 0)
	s.Node = idhttp.Node{Name: "flake@host", Version: "1.2.3",
		Traffic: func() traffic.Counts { return traffic.Counts{Connections: 3} },
	}
	running := true
	s.Generators[0].Running = func() bool { return running }
	get(t, s, "/v1/ids?n=150")
	read := func(s *idhttp.Door) (r idhttp.Report) {
		t.Helper()
		if err := json.Unmarshal([]byte(get(t, s, "/v1/info")), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	connections := 3
	want := idhttp.Report{Node: "flake@host", Version: "1.2.3", Ready: true, Connections: &connections,
		Generators: []idhttp.GeneratorReport{{Name: "flake", Ready: true, Info: idserver.Info{
			Format: "flake", Worker: uint64(idhttptest.Worker), IDs: 150, Waits: 7, Last: 1795208692979}}},
	}
	got := read(s)
	got.Generators[0].Uptime = 0
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	running = false
	until := time.Now().Add(time.Hour)
	s.Generators[0].Server.From = func() idserver.Origin {
		return idserver.Origin{From: "store", Until: until, Err: errors.New("no answer")}
	}
	got = read(s)
	g := got.Generators[0]
	if got.Ready || g.Ready || g.Reason != "noproc" || g.Detail == "" {
		t.Errorf("a server that is not registered: %+v", g)
	}
	if g.WorkerFrom != "store" || g.WorkerUntil != until.UnixMilli() || g.WorkerLeft <= 0 || g.WorkerLeft > 3600_000 ||
		g.WorkerError != "no answer" {
		t.Errorf("an assigned worker: %+v", g)
	}
	up := idhttptest.Door(t, "up")
	asked := time.Now().UnixMilli()
	if got := read(up); !got.Ready || got.Generators[0].Mark <= asked {
		t.Errorf("with a mark: %+v", got)
	}
	up.Drain()
	if got := read(up); got.Ready || !got.Generators[0].Ready {
		t.Errorf("drained: %+v", got)
	}
}
