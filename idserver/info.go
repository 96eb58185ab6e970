package idserver

import "time"

// Info is what a server is, and has done.
type Info struct {
	Format  string
	Worker  uint64
	Stats   Stats
	Last    uint64    // time of the last id, ms since 1970
	Mark    time.Time // that no id is later than; zero if none is kept
	Uptime  time.Duration
	Version string
	Origin  Origin
}

// Origin is where a worker came from.
type Origin struct {
	From  string    // "worker_id", "interface eth0", "etcd", ...; empty if nobody tells
	Until time.Time // how far ids go with it, unless that is extended; zero if they go on for good
	Err   error     // what the last attempt to extend that came to
}

// Origin returns where the worker came from.
func (s *Server) Origin() Origin {
	if s.From == nil {
		return Origin{}
	}
	return s.From()
}

// Info returns what the server is, and has done.
func (s *Server) Info() *Info {
	s.count(opInfo, nil)
	last, _ := s.IDs.Last()
	return &Info{
		Format:  s.IDs.Format().Name,
		Worker:  s.IDs.Worker(),
		Stats:   s.Stats(),
		Last:    last,
		Mark:    s.IDs.Mark(),
		Uptime:  time.Since(s.Started),
		Version: s.Version,
		Origin:  s.Origin(),
	}
}
