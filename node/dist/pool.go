package dist

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// What the connections of a node hold in memory beyond their floors, which any
// ordinary call fits in. Without these bounds every limit of a connection would have
// to be multiplied by their number.
const (
	// MaxShared bounds what they need together: frames and answers that are large,
	// monitors and links by the hundred, functions that run, messages while they
	// are terms.
	MaxShared = 32 << 20

	// MaxSmall is what there is besides for connections that hold no more than
	// smallShare each, so that the large ones leave them some.
	MaxSmall   = 4 << 20
	smallShare = 128 << 10

	// MaxSpare bounds what they keep to be faster, and can do without: buffers in
	// which the calls of a busy peer gather, and room to be used again.
	MaxSpare = 8 << 20
)

// The floors: what each may hold that is counted nowhere.
const (
	ownInput   = firstBuffer
	ownOutput  = 4 << 10
	ownWatches = 4 << 10 // about a dozen monitors
	ownLines   = 2 << 10 // about five calls
	ownSpare   = 1 << 10 // of each kind

	// ownLarge is the size of an answer that Turn makes way for without asking.
	ownLarge = 64 << 10

	// ownMessage is the size of a message that is made terms of without asking:
	// any call of a server that is there, whatever the nodes' names.
	ownMessage = 3 << 10

	// ownArguments is the same for a message that waits.
	ownArguments = 512
)

// longHeld is how long a peer may hold more than others while they find no room.
const longHeld = 2 * time.Second

var errShared = errors.New("no room: the connections hold too much as it is")

// pool is what is held of MaxShared and MaxSmall, and of MaxSpare. When there is no
// room, the connection that holds most makes some, if that is more than who asks
// would hold, and if it has held it for long or who asks holds little: it is ended.
type pool struct {
	percent int // of the bounds that there is, 0: all

	held  atomic.Int64
	spare atomic.Int64

	mu     sync.Mutex
	shares map[*share]struct{} // that hold something

	// Until then nobody is found who holds more than so much.
	futile     time.Time
	futileMore int
}

// part is what there is of a bound.
func (p *pool) part(bound int) int {
	if p.percent == 0 {
		return bound
	}
	return bound * p.percent / 100
}

// share is what one connection holds of the pool.
type share struct {
	pool *pool
	end  func() // ends the connection

	held   int
	pinned int       // of this, what stays though the connection ends
	since  time.Time // it has held about as much
	ended  bool      // what it held counts no more, but for what is pinned
}

// take takes n bytes, or reports that there is no room. To take or give less than
// nothing is nothing.
func (s *share) take(n int) bool {
	if n <= 0 {
		return true
	}
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	all := s.held + n
	limit := p.part(MaxShared)
	if all <= smallShare {
		limit += p.part(MaxSmall)
	}
	if s.ended {
		return false
	}
	for int(p.held.Load())+n > limit {
		if !p.makeRoom(all) {
			return false
		}
	}
	if n >= s.held {
		s.since = time.Now()
	}
	if p.shares == nil {
		p.shares = make(map[*share]struct{})
	}
	p.shares[s] = struct{}{}
	s.held = all
	p.held.Add(int64(n))
	return true
}

func (s *share) give(n int) {
	if n <= 0 {
		return
	}
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.ended {
		return
	}
	s.drop(n)
}

func (s *share) drop(n int) {
	if n >= s.held/2 {
		s.since = time.Now()
	}
	s.held -= n
	s.pool.held.Add(-int64(n))
	if s.held == 0 {
		delete(s.pool.shares, s)
	}
}

// pin has n bytes of those held count until unpin, though the connection end before
// that, unless it has.
func (s *share) pin(n int) bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.ended {
		return false
	}
	s.pinned += n
	return true
}

// unpin gives back what was pinned.
func (s *share) unpin(n int) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pinned -= n
	s.drop(n)
}

// makeRoom ends the connection that holds most, if that is more than so many bytes,
// and if it has held it for long or who asks holds little, as what ordinary calls need is.
func (p *pool) makeRoom(more int) bool {
	now := time.Now()
	if now.Before(p.futile) && more >= p.futileMore {
		return false
	}
	var most *share
	for s := range p.shares {
		mayGo := s.held > more && (more <= smallShare || now.Sub(s.since) >= longHeld)
		if mayGo && (most == nil || s.held > most.held) {
			most = s
		}
	}
	if most == nil {
		const pause = 10 * time.Millisecond // looking costs as much as there are connections
		p.futile, p.futileMore = now.Add(pause), more
		return false
	}
	most.ended = true
	delete(p.shares, most)
	p.held.Add(int64(most.pinned - most.held)) // the rest it lets go of while it ends
	most.held = most.pinned
	most.end()
	return true
}

// account is what one part of a connection holds. Whoever guards that part
// guards it.
type account struct {
	share *share
	spare bool // of MaxSpare
	own   int  // bytes that are of the floor
	taken int  // of the pool
}

// accountStep is what is taken of a pool at a time, so that it is not asked often.
const accountStep = 4 << 10

// hold changes the bytes held to n, or reports that the pool has not as many.
func (a *account) hold(n int) bool {
	if n <= a.own && a.taken == 0 { // an ordinary call
		return true
	}
	want := (max(n-a.own, 0) + accountStep - 1) / accountStep * accountStep
	switch more := want - a.taken; {
	case more > 0:
		if !a.take(more) {
			return false
		}
	case more == 0, more == -accountStep && n > a.own/2: // it may soon be wanted again
		return true
	case a.spare:
		a.share.pool.spare.Add(int64(more))
	default:
		a.share.give(-more)
	}
	a.taken = want
	return true
}

func (a *account) take(n int) bool {
	if !a.spare {
		return a.share.take(n)
	}
	if a.share.pool.spare.Add(int64(n)) > int64(a.share.pool.part(MaxSpare)) {
		a.share.pool.spare.Add(-int64(n))
		return false
	}
	return true
}

// weight is what a message may take as terms: the smallest element is two
// bytes, a term of no more than 40, and half of that again is for what is made on the way.
func weight(message []byte, own int) int {
	const perOctet, most = 30, 60 * etf.MaxElements
	if len(message) <= own {
		return 0
	}
	return len(message) + min(perOctet*len(message), most)
}

// weigh takes room for a message as terms. What it returns has to be given back.
func (c *Conn) weigh(message []byte, own int) (taken int, err error) {
	taken = weight(message, own)
	if !c.share.take(taken) {
		return 0, errShared
	}
	return taken, nil
}
