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

var errShared = errors.New("no room: the connections hold too much as it is")

// pool is what is held of MaxShared and MaxSmall, and of MaxSpare. When there is no
// room, the connection that holds most, and has held most of it for long, makes some:
// it is ended, if who asks would hold less.
type pool struct {
	percent int // of the bounds that there is, 0: all

	held  atomic.Int64
	spare atomic.Int64

	// Nothing is allocated under mu: who does may have to wait for the garbage
	// collector, and all others would wait with it.
	mu     sync.Mutex
	shares []*share // that hold something

	// Until then nobody is found whose weight is more than so much.
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

// limit is how much all may hold, for one that holds so much of it.
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

// makeRoom stops the share that weighs most, if that is more than the asking one
// would with all that it wants, and returns it. A share weighs what it holds, and what
// it has long held once more: so of many that hold about as much, it is not who calls
// often and holds little between the calls. One that wants much takes room only of
// what was long held.
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
		const pause = 10 * time.Millisecond // looking costs as much as there are connections
		p.futile, p.futileMore = now.Add(pause), than
		return nil
	}
	most.stop()
	return most
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
