package distribution

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// These constants bound the memory that all connections of a node hold beyond their allowances.
// Ordinary calls need no more than those, which are listed below.
const (
	// MaxShared bounds what all connections together hold in large frames and answers, many
	// monitors and links, running functions, and decoded messages.
	MaxShared = 32 << 20

	// MaxSmall is additional room for connections that hold at most smallMemory each, so that
	// the others cannot use up all room.
	MaxSmall    = 4 << 20
	smallMemory = 128 << 10

	// MaxSpare bounds the memory that only makes connections faster: large read buffers
	// for busy peers, and memory kept for reuse.
	MaxSpare = 8 << 20

	// maxUnfreed bounds the uncounted memory that connections still hold after they were ended to
	// make room. While they hold more, no other connection is ended.
	maxUnfreed = 8 << 20
)

// The allowances: how many bytes each connection may hold uncounted.
const (
	ownInput   = firstBuffer
	ownOutput  = 4 << 10
	ownWatches = 4 << 10 // about a dozen monitors
	ownQueues  = 2 << 10 // about five queued calls
	ownSpare   = 1 << 10 // of each kind of memory kept for reuse

	// ownLarge is the size above which an answer is large.
	ownLarge = 64 << 10

	// ownMessage is the size up to which a message is decoded without taking room from the
	// pool. Any call to our servers fits, even with the longest node names.
	ownMessage = 3 << 10

	// ownArguments is the size up to which a queued message takes room from the pool only for its
	// bytes. A larger one also takes room for the terms decoded from it.
	ownArguments = 512
)

var errShared = errors.New("no room: the connections hold too much memory")

// pool counts the bytes held within MaxShared and MaxSmall, and within MaxSpare. When there is no
// room, it may end the connection that weighs most, if that weighs more than the one that needs
// room. Memory that a connection has long held counts twice in its weight: see makeRoom.
type pool struct {
	percent int // applied to the bounds; 0 means 100

	held  atomic.Int64 // within MaxShared and MaxSmall; changed under mu
	spare atomic.Int64 // within MaxSpare

	// mu guards the fields below, and those of each memory. Code that holds it must not allocate: an
	// allocation may wait for the garbage collector, and all connections would then wait too.
	mu      sync.Mutex
	holders []*memory // those with held > 0
	unfreed int       // bytes that stopped connections have not released yet

	// Until the time futile, makeRoom does not search for a holder that weighs more than
	// futileMore, because the last search found none.
	futile     time.Time
	futileMore int
}

func (p *pool) part(bound int) int {
	if p.percent == 0 {
		return bound
	}
	return bound * p.percent / 100
}

// makeRoom makes room for asker, which would then hold total bytes. It stops and returns the
// heaviest holder, if that holder weighs more than asker would then. A holder's weight is the bytes
// it holds plus the bytes it has long held. So among many connections that hold about the same
// amount, a frequent caller that holds little between calls is spared. If total exceeds
// smallMemory, only holders that have long held more than total may be stopped.
func (p *pool) makeRoom(asker *memory, total int) *memory {
	now := time.Now()
	heaviest := total + asker.steady(now) // so asker itself is never chosen
	if now.Before(p.futile) && heaviest >= p.futileMore || p.unfreed > p.part(maxUnfreed) {
		return nil
	}
	var chosen *memory
	for _, s := range p.holders {
		steady := s.steady(now)
		eligible := !s.ended && (total <= smallMemory || steady > total)
		if w := s.held + steady; eligible && w > heaviest {
			chosen, heaviest = s, w
		}
	}
	if chosen == nil {
		const pause = 10 * time.Millisecond // the search reads every holder
		p.futile, p.futileMore = now.Add(pause), heaviest
		return nil
	}
	chosen.stop()
	return chosen
}

// account counts the bytes held by one part of a connection, under the lock of that part.
type account struct {
	memory *memory
	spare  bool // counted in MaxSpare
	own    int  // the allowance, in bytes
	taken  int  // bytes taken from the pool
}

// accountStep is the number of bytes taken from the pool at a time, so that few changes need
// the pool's lock.
const accountStep = 4 << 10

// resize sets the number of bytes held to n. It returns false, and changes nothing, if the
// pool has no room.
func (a *account) resize(n int) bool {
	if n <= a.own && a.taken == 0 { // an ordinary call
		return true
	}
	want := (max(n-a.own, 0) + accountStep - 1) / accountStep * accountStep
	switch more := want - a.taken; {
	case more == 0, more == -accountStep && n > a.own/2: // keep a step that may soon be needed again
		return true
	case a.spare:
		if p := a.memory.pool; p.spare.Add(int64(more)) > int64(p.part(MaxSpare)) && more > 0 {
			p.spare.Add(-int64(more))
			return false
		}
	case more > 0:
		if !a.memory.take(more) {
			return false
		}
	default:
		a.memory.give(-more)
	}
	a.taken = want
	return true
}

// weight returns the memory that a message may need once decoded, or 0 if it has at most own bytes.
// A term needs up to 40 bytes in addition to those in the message. Decoding needs half as much again.
func weight(message []byte, own int) int {
	const perTerm = 60
	if len(message) <= own {
		return 0
	}
	return len(message) + perTerm*min(etf.Count(message), etf.MaxElements)
}

// weigh takes the weight of a message from the pool. The caller must return taken to the pool.
func (c *Conn) weigh(message []byte, own int) (taken int, err error) {
	taken = weight(message, own)
	if !c.memory.take(taken) {
		return 0, errShared
	}
	return taken, nil
}

// longHeld is the time after which held bytes count twice in the weight of a holder.
const longHeld = time.Second

// memory counts the bytes of the pool that one connection holds.
type memory struct {
	pool *pool
	end  func() // ends the connection

	held    int
	pinned  int  // the part of held that outlives the connection
	ended   bool // only pinned bytes still count
	unfreed int  // once stopped, the bytes not released yet
	gone    bool // freed was called
	index   int  // in pool.holders, if held > 0

	since time.Time // start of the period of least[0]
	least [2]int    // the minimum of held in this period of longHeld and in the previous one
}

// take takes n bytes from the pool and reports whether there was room. Like give, it ignores
// n <= 0.
func (s *memory) take(n int) bool {
	if n <= 0 {
		return true
	}
	for {
		room, stopped := s.tryTake(n)
		if stopped == nil {
			return room
		}
		stopped.end()
	}
}

// tryTake is like take, but if it makes room, it returns the holder that it has stopped, and whose
// connection the caller must end.
func (s *memory) tryTake(n int) (room bool, stopped *memory) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := p.part(MaxShared)
	if s.held+n <= smallMemory {
		limit += p.part(MaxSmall)
	}
	room = !s.ended && int(p.held.Load())+n <= limit
	if room {
		s.change(n)
	} else if !s.ended {
		stopped = p.makeRoom(s, s.held+n)
	}
	return room, stopped
}

func (s *memory) give(n int) {
	if n <= 0 {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if !s.ended {
		s.change(-n)
	}
}

// pin keeps n held bytes counted until unpin, even if the connection ends first. It returns
// false if the connection has already ended.
func (s *memory) pin(n int) bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.ended {
		return false
	}
	s.pinned += n
	return true
}

func (s *memory) unpin(n int) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pinned -= n
	s.change(-n)
}

// stop stops counting all but the pinned bytes; the connection releases the other bytes as it
// ends.
func (s *memory) stop() {
	s.ended = true
	n := s.held - s.pinned
	if !s.gone {
		s.unfreed = n
		s.pool.unfreed += n
	}
	s.change(-n)
}

// freed records that a connection has ended and released its memory. Bytes that others hold for the
// connection may still be counted.
func (s *memory) freed() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.gone = true
	s.pool.unfreed -= s.unfreed
}

func (s *memory) change(n int) {
	p, now := s.pool, time.Now()
	if s.held == 0 {
		s.index, p.holders = len(p.holders), append(p.holders, s)
		s.since, s.least = now, [2]int{n, 0}
	}
	s.rotate(now)
	s.held += n
	s.least[0] = min(s.least[0], s.held)
	p.held.Add(int64(n))
	if s.held == 0 {
		last := p.holders[len(p.holders)-1]
		p.holders[s.index], last.index = last, s.index
		p.holders = slices.Delete(p.holders, len(p.holders)-1, len(p.holders))
	}
}

// rotate starts the next period of longHeld if the current one has ended.
func (s *memory) rotate(now time.Time) {
	switch since := now.Sub(s.since); {
	case since >= 2*longHeld:
		s.since, s.least = now, [2]int{s.held, s.held}
	case since >= longHeld:
		s.since, s.least = now, [2]int{s.held, s.least[0]}
	}
}

// steady returns the number of bytes that have been held for at least longHeld.
func (s *memory) steady(now time.Time) int {
	s.rotate(now)
	return min(s.least[0], s.least[1])
}

// slimMap is a map that frees memory when most of its entries are removed. Go's maps do not.
type slimMap[K comparable, V any] struct {
	all  map[K]V
	peak int // the largest number of entries that all has had
}

const (
	slimMin   = 512 // remove does not shrink a map that never had more entries than this
	slimEntry = 64  // approximate bytes of an entry
)

func (l *slimMap[K, V]) set(k K, v V) {
	if l.all == nil {
		l.all = make(map[K]V)
	}
	l.all[k] = v
	l.peak = max(l.peak, len(l.all))
}

func (l *slimMap[K, V]) remove(k K) {
	delete(l.all, k)
	if l.peak > slimMin && len(l.all) < l.peak/8 {
		l.shrink()
	}
}

// shrink frees unused memory if it is at least half of the total.
func (l *slimMap[K, V]) shrink() {
	if l.peak <= 2*len(l.all) {
		return
	}
	all := make(map[K]V, len(l.all))
	maps.Copy(all, l.all)
	l.all, l.peak = all, len(all)
}

// idle returns the approximate number of unused bytes.
func (l *slimMap[K, V]) idle() int { return (l.peak - len(l.all)) * slimEntry }
