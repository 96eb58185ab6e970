package idhttp

import (
	"encoding/json"
	"net/http"
	"time"
)

// Report is what /v1/info tells: what the node is, and has done. Times and spans are in
// ms, times since 1970.
type Report struct {
	Node        string            `json:"node"`
	Version     string            `json:"version"`
	Ready       bool              `json:"ready"`                 // as /readyz tells
	Connections *int              `json:"connections,omitempty"` // nil: not told
	Generators  []GeneratorReport `json:"generators"`
}

// GeneratorReport has the properties that the Erlang call info has, and whether the
// generator can hand out ids.
type GeneratorReport struct {
	Name        string `json:"name"`
	Format      string `json:"format"`
	Worker      uint64 `json:"worker"`
	WorkerFrom  string `json:"worker_from,omitempty"`
	WorkerUntil int64  `json:"worker_until,omitempty"` // how far ids go with it, with etcd
	WorkerLeft  int64  `json:"worker_left,omitempty"`  // how long that is from now
	WorkerError string `json:"worker_error,omitempty"`
	IDs         uint64 `json:"ids"`
	Waits       uint64 `json:"waits"`
	Refusals    uint64 `json:"refusals"`
	Last        uint64 `json:"last"`
	Mark        int64  `json:"mark,omitempty"` // if one is kept
	Uptime      int64  `json:"uptime"`
	Ready       bool   `json:"ready"`
	Reason      string `json:"reason,omitempty"` // why not, as of the problem no-ids
	Detail      string `json:"detail,omitempty"`
}

// info tells the report.
func (s *Server) info(w http.ResponseWriter, r *http.Request) *problem {
	if _, fault := readParameters(r, nil); fault != nil {
		return fault
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h["Cache-Control"] = noStore
	json.NewEncoder(w).Encode(s.report())
	return nil
}

func (s *Server) report() *Report {
	v := &Report{Node: s.Node.Name, Version: s.Node.Version, Ready: !s.draining.Load(), Connections: new(int)}
	*v.Connections = s.traffic().Connections
	for i := range s.Generators {
		g := s.Generators[i].report()
		v.Ready = v.Ready && g.Ready
		v.Generators = append(v.Generators, g)
	}
	return v
}

func (g *Generator) report() GeneratorReport {
	reason, detail := g.trouble() // before the mark is looked at: it moves one left behind
	i := g.Server.Info()
	v := GeneratorReport{
		Name: g.Name, Format: i.Format, Worker: i.Worker, WorkerFrom: i.Origin.From,
		IDs: i.Stats.IDs, Waits: i.Stats.Waits, Refusals: i.Stats.Refusals,
		Last: i.Last, Uptime: i.Uptime.Milliseconds(), Ready: reason == "", Reason: reason, Detail: detail,
	}
	if !i.Mark.IsZero() {
		v.Mark = i.Mark.UnixMilli()
	}
	if !i.Origin.Until.IsZero() {
		v.WorkerUntil, v.WorkerLeft = i.Origin.Until.UnixMilli(), time.Until(i.Origin.Until).Milliseconds()
	}
	if i.Origin.Err != nil {
		v.WorkerError = i.Origin.Err.Error()
	}
	return v
}
