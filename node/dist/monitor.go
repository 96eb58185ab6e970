package dist

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// monitor is set by the peer. Its terms follow each other: the reference; our process,
// by pid or name as the peer named it; the peer's process.
type monitor struct {
	process      uint64
	terms        []byte
	toItem, toBy int      // where the last two begin
	next         *monitor // with the same sum, or spare
}

func (m *monitor) ref() []byte  { return m.terms[:m.toItem] }
func (m *monitor) item() []byte { return m.terms[m.toItem:m.toBy] }
func (m *monitor) by() []byte   { return m.terms[m.toBy:] }
func (m *monitor) size() int    { return watchSize + cap(m.terms) }

// monitors keeps monitors by reference. Most come and go with a call, so removed ones
// are reused.
type monitors struct {
	n      int
	sum    func(ref []byte) uint64
	sums   lean[uint64, *monitor]
	spares *monitor
	nSpare int
	spared int // bytes
}

const (
	maxSpares = 256 // this many callers need no more memory, if there is room for them
	maxSpare  = 512 // bytes of terms; OTP's take 100 and a name
)

func (s *monitors) clear() {
	seed := maphash.MakeSeed()
	*s = monitors{sum: func(ref []byte) uint64 { return maphash.Bytes(seed, ref) }}
}

// add keeps a monitor whose reference is new, and returns its size.
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

// take removes and returns the monitor with the reference, or nil.
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

// spare lets a taken monitor be reused.
func (s *monitors) spare(m *monitor) {
	if s.nSpare < maxSpares && cap(m.terms) <= maxSpare {
		m.next = s.spares
		s.spares = m
		s.nSpare++
		s.spared += m.size()
	}
}

// idle returns what is held for later monitors.
func (s *monitors) idle() int { return s.spared + s.sums.idle() }

// shrink releases that.
func (s *monitors) shrink() {
	s.spares, s.nSpare, s.spared = nil, 0, 0
	s.sums.shrink()
}

// each calls f with every monitor, which f may take and spare.
func (s *monitors) each(f func(m *monitor)) {
	for _, m := range s.sums.all {
		for m != nil {
			next := m.next
			f(m)
			m = next
		}
	}
}
