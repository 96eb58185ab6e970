package dist

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// monitor is a monitor of the peer. Its terms are the reference; our process, by the pid
// or name that the peer sent; and the peer's process.
type monitor struct {
	process      uint64
	terms        []byte
	toItem, toBy int      // start of the second term, and of the third
	next         *monitor // the next one with the same sum, or the next spare
}

func (m *monitor) ref() []byte  { return m.terms[:m.toItem] }
func (m *monitor) item() []byte { return m.terms[m.toItem:m.toBy] }
func (m *monitor) by() []byte   { return m.terms[m.toBy:] }
func (m *monitor) size() int    { return watchSize + cap(m.terms) }

// monitors holds monitors by reference. Most last for one call, so removed ones are
// reused.
type monitors struct {
	n      int
	sum    func(ref []byte) uint64
	sums   slimMap[uint64, *monitor]
	spares *monitor
	nSpare int
	spared int // bytes of spares
}

const (
	maxSpares = 256 // up to this many concurrent calls allocate no monitors
	maxSpare  = 512 // bytes of terms; those of OTP have 100 and a name
)

func (s *monitors) clear() {
	seed := maphash.MakeSeed()
	*s = monitors{sum: func(ref []byte) uint64 { return maphash.Bytes(seed, ref) }}
}

// add adds a monitor and returns its size. The reference must be new.
func (s *monitors) add(process uint64, ref, item, by []byte) int {
	m := s.spares
	if m == nil {
		m = new(monitor)
	} else {
		s.spares = m.next
		s.nSpare--
		s.spared -= m.size()
	}
	m.process = process
	m.terms = slices.Grow(m.terms[:0], len(ref)+len(item)+len(by))
	m.terms = append(append(append(m.terms, ref...), item...), by...)
	m.toItem, m.toBy = len(ref), len(ref)+len(item)
	sum := s.sum(ref)
	m.next = s.sums.all[sum]
	s.sums.set(sum, m)
	s.n++
	return m.size()
}

// take removes and returns the monitor with the reference, or returns nil.
func (s *monitors) take(ref []byte) *monitor {
	sum := s.sum(ref)
	first := s.sums.all[sum]
	for at := &first; *at != nil; at = &(*at).next {
		m := *at
		if !bytes.Equal(m.ref(), ref) {
			continue
		}
		*at = m.next
		if first == nil {
			s.sums.remove(sum)
		} else {
			s.sums.set(sum, first)
		}
		s.n--
		return m
	}
	return nil
}

// spare keeps a taken monitor for reuse.
func (s *monitors) spare(m *monitor) {
	if s.nSpare < maxSpares && cap(m.terms) <= maxSpare {
		m.next = s.spares
		s.spares = m
		s.nSpare++
		s.spared += m.size()
	}
}

// idle returns the bytes held for later monitors.
func (s *monitors) idle() int { return s.spared + s.sums.idle() }

// shrink releases the bytes held for later monitors.
func (s *monitors) shrink() {
	s.spares, s.nSpare, s.spared = nil, 0, 0
	s.sums.shrink()
}

// each calls f with every monitor. f may take and spare it.
func (s *monitors) each(f func(m *monitor)) {
	for _, m := range s.sums.all {
		for m != nil {
			next := m.next
			f(m)
			m = next
		}
	}
}
