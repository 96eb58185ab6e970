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
	Fleet   *Fleet // or nil
}

// Info returns what the server is, and has done.
func (s *Server) Info() *Info {
	s.count(opInfo, nil)
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
