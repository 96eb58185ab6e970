package idserver

import (
	"time"

	"github.com/flake-go/flake/node/etf"
)

// Info is what a server is, and has done.
type Info struct {
	Format  string
	Worker  uint64
	Stats   Stats
	Last    uint64    // time of the last id, ms since 1970
	Mark    time.Time // that no id is later than; zero if none is kept
	Uptime  time.Duration
	Version string
	Fleet   *Fleet // or nil
}

func (s *Server) info() *Info {
	last, _ := s.IDs.Last()
	i := &Info{
		Format:  s.IDs.Format().Name(),
		Worker:  s.IDs.Worker(),
		Stats:   s.Stats(),
		Last:    last,
		Mark:    s.IDs.Mark(),
		Uptime:  time.Since(s.Started),
		Version: s.Version,
	}
	if s.Fleet != nil {
		f := s.Fleet()
		i.Fleet = &f
	}
	return i
}

// term returns a property list, with a mark if one is kept.
func (i *Info) term() etf.List {
	list := etf.List{
		property("format", etf.Atom(i.Format)),
		property("worker", int64(i.Worker)),
		property("ids", int64(i.Stats.IDs)),
		property("waits", int64(i.Stats.Waits)),
		property("refusals", int64(i.Stats.Refusals)),
		property("last", int64(i.Last)),
	}
	if !i.Mark.IsZero() {
		list = append(list, property("mark", i.Mark.UnixMilli()))
	}
	list = append(list,
		property("uptime", i.Uptime.Milliseconds()),
		property("version", etf.String(i.Version)),
	)
	if i.Fleet != nil {
		list = append(list, i.Fleet.properties()...)
	}
	return list
}

func property(name etf.Atom, value etf.Term) etf.Term { return etf.Tuple{name, value} }
