package idhttp

import (
	"bytes"
	"net/http"
	"time"
)

// interval is how often the page is renewed.
const interval = time.Second

// looks is how many seconds pass between two looks at who takes ids, when no page is open.
const looks = 10

// sample looks every second how many ids there have been, and who is in trouble.
func (s *Server) sample() {
	tick := time.Tick(interval)
	ids, saved := make([]uint64, len(s.Generators)), make([]time.Time, len(s.Generators))
	for n := 0; ; n++ {
		now := time.Now()
		refusals := uint64(0)
		for i := range s.Generators {
			stats := s.Generators[i].Server.Stats()
			ids[i] = stats.IDs
			refusals += stats.Refusals
			if s.Generators[i].rests(&saved[i]) {
				continue // who looked for trouble would have the file written
			}
			reason, _ := s.Generators[i].trouble()
			s.troubles.note(i, reason, now)
		}
		if n%looks == 0 {
			s.takers.look(now, s.Node.Peers)
		}
		s.noteClock(now)
		t := s.traffic()
		s.lately.add(s.latencies(t))
		s.errors.add(now, []uint64{refusals, t.refused()})
		s.history.add(now, ids)
		select {
		case <-tick:
		case <-s.ctx.Done():
			return
		}
	}
}

// events sends what the page shows of the node, as HTML, every second: server-sent
// events, of the HTML standard.
func (s *Server) events(w http.ResponseWriter, r *http.Request) *problem {
	if _, fault := readParameters(r, nil); fault != nil {
		return fault
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		p := failed(http.StatusServiceUnavailable, "%d pages follow events already, as many as may", MaxStreams)
		p.retry = idleTime
		return p
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h["Cache-Control"] = noStore
	c := http.NewResponseController(w)
	for {
		awaited := s.history.awaited() // before the look at the access, or a change in between were seen one event late
		if s.admit(&endpoint{}, r) != nil {
			return nil
		}
		c.SetWriteDeadline(time.Now().Add(writeTime))
		s.writeEvent(w, c) // if nobody reads it that ends the request's context
		select {
		case <-awaited:
		case <-r.Context().Done():
			return nil
		case <-s.ctx.Done():
			return nil
		}
	}
}

func (s *Server) writeEvent(w http.ResponseWriter, c *http.ResponseController) {
	var html, event bytes.Buffer
	templates.ExecuteTemplate(&html, "live", s.state(time.Now()))
	for line := range bytes.Lines(html.Bytes()) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			event.WriteString("data: ")
			event.Write(line)
			event.WriteByte('\n')
		}
	}
	event.WriteByte('\n')
	w.Write(event.Bytes())
	c.Flush()
}
