package dist

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// These bound the memory that all connections of a node hold beyond their floors; any
// ordinary call fits in its floor. Without them, every limit of a connection would
// have to be multiplied by the number of connections.
const (
	// MaxShared bounds what all need together: large frames and answers, monitors and
	// links by the hundred, running functions, messages while they are terms.
	MaxShared = 32 << 20

	// MaxSmall is extra room for connections that hold at most smallShare each, so that
	// large ones leave them some.
	MaxSmall   = 4 << 20
	smallShare = 128 << 10

	// MaxSpare bounds what they keep for speed and can do without: buffers that gather
	// the calls of a busy peer, and room for reuse.
	MaxSpare = 8 << 20
)

// The floors: what each connection may hold uncounted.
const (
	ownInput   = firstBuffer
	ownOutput  = 4 << 10
	ownWatches = 4 << 10 // about a dozen monitors
	ownLines   = 2 << 10 // about five calls
	ownSpare   = 1 << 10 // of each kind

	// ownLarge is the size of an answer that needs no turn.
	ownLarge = 64 << 10

	// ownMessage is the size of a message that is decoded without asking for room: any
	// call of a server here, whatever the nodes' names.
	ownMessage = 3 << 10

	// ownArguments is the same for a message that waits.
	ownArguments = 512
)

var errShared = errors.New("no room: the connections already hold too much")

// pool counts what is held of MaxShared and MaxSmall, and of MaxSpare. When there is
// no room, it ends the connection that holds most, and has held most of it for long,
// if the asking one would hold less.
type pool struct {
	percent int // of the bounds; 0: all

	held  atomic.Int64
	spare atomic.Int64

	// Nothing allocates under mu: an allocation may wait for the garbage collector, and
	// everybody else would wait too.
	mu     sync.Mutex
	shares []*share // those that hold something

	// Before futile, no share outweighs futileMore.
	futile     time.Time
	futileMore int
}

// part returns this pool's part of a bound.
func (p *pool) part(bound int) int {
	if p.percent == 0 {
		return bound
	}
	return bound * p.percent / 100
}

// limit returns how much all may hold, for a share that holds this much of it.
func (p *pool) limit(held int) int {
	limit := p.part(MaxShared)
	if held <= smallShare {
		limit += p.part(MaxSmall)
	}
	return limit
}

func (p *pool) add(s *share) {
	s.place = len(p.shares)
	p.shares = append(p.shares, s)
}

func (p *pool) remove(s *share) {
	last := len(p.shares) - 1
	p.shares[s.place] = p.shares[last]
	p.shares[s.place].place = s.place
	p.shares[last] = nil
	p.shares = p.shares[:last]
}

// makeRoom stops and returns the heaviest share, if it weighs more than the asking one
// would with all it wants. A share weighs what it holds, plus what it has held for
// long: so among many that hold about as much, a frequent caller that holds little
// between calls is spared. For one that wants much, only what was long held counts.
func (p *pool) makeRoom(asks *share, all int) *share {
	now := time.Now()
	than := all + asks.steady(now)
	if now.Before(p.futile) && than >= p.futileMore {
		return nil
	}
	var most *share
	weight := than
	for _, s := range p.shares {
		steady := s.steady(now)
		mayGo := s != asks && !s.ended && (all <= smallShare || steady > all)
		if w := s.held + steady; mayGo && w > weight {
			most, weight = s, w
		}
	}
	if most == nil {
		const pause = 10 * time.Millisecond // looking visits every connection
		p.futile, p.futileMore = now.Add(pause), than
		return nil
	}
	most.stop()
	return most
}

// account is what one part of a connection holds. That part's lock guards it.
type account struct {
	share *share
	spare bool // counted in MaxSpare
	own   int  // bytes that belong to the floor
	taken int  // from the pool
}

// accountStep is how much is taken from a pool at a time, so that it is asked seldom.
const accountStep = 4 << 10

// hold changes the bytes held to n, or reports that the pool has no room for them.
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
	case more == 0, more == -accountStep && n > a.own/2: // it may soon be needed again
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

// weight is what a message may take as terms: the smallest element has two bytes, its
// term takes up to 40, and decoding needs half as much again.
func weight(message []byte, own int) int {
	const perOctet, most = 30, 60 * etf.MaxElements
	if len(message) <= own {
		return 0
	}
	return len(message) + min(perOctet*len(message), most)
}

// weigh takes room for a message as terms. The caller must give taken back.
func (c *Conn) weigh(message []byte, own int) (taken int, err error) {
	taken = weight(message, own)
	if !c.share.take(taken) {
		return 0, errShared
	}
	return taken, nil
}
