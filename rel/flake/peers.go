package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/iderl"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// askTime bounds how long a peer may take to answer, connecting included.
const askTime = 5 * time.Second

// fleet is the node among its peers: those that it asks, and what it tells those that
// ask it.
type fleet struct {
	name       string
	peers      []string
	interval   time.Duration
	cookies    atomic.Pointer[[]string] // to be tried in order
	tls        func() *tls.Config       // or nil
	find       func(ctx context.Context, peer string) (found epmd.Node, host string, err error)
	generators []*member
	log        *slog.Logger

	since atomic.Int64 // when it began to hand out ids, ms since 1970; 0: not yet

	mu     sync.Mutex
	round  []sight           // the last one
	told   map[string]string // by peer, what was last said of it
	cancel context.CancelFunc
	done   chan struct{}
}

// member is a generator of ours.
type member struct {
	name  string
	place *place // nil: its number is from etcd, which sees to it
	halt  *idserver.Halt
	taken atomic.Bool    // it has been stopped, as another has its place
	seen  map[string]int // how often in a row a peer had its place
}

// sight is what a peer was seen to be.
type sight struct {
	peer   string
	err    error         // it did not answer
	blind  bool          // it answered, and told nothing that can be compared
	offset time.Duration // of its clock from ours
	doubt  time.Duration // by how much offset may be wrong
	fleet  idserver.Fleet
}

// newFleet puts the generators under a halt if there are peers to be asked.
func newFleet(cfg config.Config, secured func() *tls.Config, keeper *epmd.Keeper, gs generators, log *slog.Logger) *fleet {
	f := &fleet{
		name: cfg.Node.Name, interval: cfg.Flake.PeersInterval, tls: secured, find: keeper.Find,
		log: log, told: make(map[string]string), done: make(chan struct{}),
	}
	f.setCookies(cfg.Node.Cookie, cfg.Node.PreviousCookie)
	for _, peer := range cfg.Flake.Peers { // all nodes may have one list
		if peer != f.name && !slices.Contains(f.peers, peer) {
			f.peers = append(f.peers, peer)
		}
	}
	for _, g := range gs.list {
		m := &member{name: g.name, place: g.place, seen: make(map[string]int)}
		if len(f.peers) > 0 {
			m.halt = &idserver.Halt{Source: g.server.IDs}
			m.halt.Stop(idserver.ErrPeersNotAsked)
			g.server.IDs = m.halt
		}
		f.generators = append(f.generators, m)
	}
	gs.list[0].server.Fleet = f.tell
	return f
}

// setCookies says with what to ask the peers from now on.
func (f *fleet) setCookies(current, previous string) {
	cookies := []string{current}
	if previous != "" {
		cookies = append(cookies, previous)
	}
	f.cookies.Store(&cookies)
}

// tell is what other nodes are told.
func (f *fleet) tell() idserver.Fleet {
	t := idserver.Fleet{Time: time.Now()}
	if since := f.since.Load(); since != 0 {
		t.Since = time.UnixMilli(since)
	}
	for _, m := range f.generators {
		if m.place != nil && !m.taken.Load() {
			t.Workers = append(t.Workers, idserver.Worker{Generator: m.name, Kind: m.place.kind, First: m.place.first, Last: m.place.last})
		}
	}
	return t
}

// begin asks the peers for the first time, and has ids handed out unless one of them
// speaks against it. The node is known to others by then: of two that start at once
// one sees the other for sure.
func (f *fleet) begin(ctx context.Context) error {
	if err := f.meet(ctx); err != nil {
		return err
	}
	f.since.Store(time.Now().UnixMilli())
	if len(f.peers) == 0 {
		return nil
	}
	for _, m := range f.generators {
		m.halt.Stop(nil)
	}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go f.watch(ctx)
	return nil
}

// meet asks the peers, if there are any, and fails if one of them speaks against a start.
func (f *fleet) meet(ctx context.Context) error {
	if len(f.peers) == 0 {
		return nil
	}
	sights := f.ask(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.say(sights)
	return errors.Join(f.takenAtStart(sights), f.clockFault(sights))
}

// watch asks the peers from time to time.
func (f *fleet) watch(ctx context.Context) {
	defer close(f.done)
	for {
		pause := f.interval*3/4 + rand.N(f.interval/2)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if sights := f.ask(ctx); ctx.Err() == nil {
			f.say(sights)
			f.judge(sights)
		}
	}
}

// end has nobody asked any more.
func (f *fleet) end() {
	if f.cancel != nil {
		f.cancel()
		<-f.done
	}
}

// ask asks all peers at a time.
func (f *fleet) ask(ctx context.Context) []sight {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	sights := make([]sight, len(f.peers))
	var asking sync.WaitGroup
	for i, peer := range f.peers {
		asking.Go(func() { sights[i] = f.askOne(ctx, peer) })
	}
	asking.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.round = sights
	return sights
}

func (f *fleet) askOne(ctx context.Context, peer string) (s sight) {
	s.peer = peer
	found, host, err := f.find(ctx, peer)
	if err != nil {
		s.err = err
		return s
	}
	conn, err := f.dial(ctx, peer, net.JoinHostPort(host, strconv.Itoa(int(found.Port))))
	if err != nil {
		s.err = err
		return s
	}
	defer conn.Close()
	asked := time.Now()
	info, err := conn.Call(ctx, "flake", etf.Atom("info"))
	took := time.Since(asked)
	if err != nil {
		s.err = err
		return s
	}
	var ok bool
	if s.fleet, ok = iderl.ReadFleet(info); !ok {
		s.blind = true
		return s
	}
	s.doubt = took/2 + time.Millisecond // which times are told in
	s.offset = s.fleet.Time.Sub(asked.Add(took / 2).Round(0))
	return s
}

// dial connects to a peer, which may have any of our cookies.
func (f *fleet) dial(ctx context.Context, peer, addr string) (c *client.Conn, err error) {
	dialer := client.Dialer{Addr: addr}
	if f.tls != nil {
		dialer.TLS = f.tls()
	}
	for _, dialer.Cookie = range *f.cookies.Load() {
		if c, err = dialer.Dial(ctx, peer); !errors.Is(err, handshake.ErrCookie) {
			break
		}
	}
	return c, err
}

// say logs what is new about peers that cannot be compared.
func (f *fleet) say(sights []sight) {
	for _, s := range sights {
		now := ""
		switch {
		case s.err != nil:
			now = "silent"
		case s.blind:
			now = "blind"
		}
		before, known := f.told[s.peer]
		f.told[s.peer] = now
		switch {
		case now != before && s.err != nil:
			f.log.Warn("a peer does not answer: whether it has our worker is not known", "peer", s.peer, "err", s.err)
		case now != before && s.blind:
			f.log.Warn("a peer does not say which worker it has: it is another program, or an older one", "peer", s.peer)
		case now != before && known:
			f.log.Info("a peer answers again", "peer", s.peer)
		}
	}
}

// asked is what HTTP tells of the peers.
func (f *fleet) asked() (all []idhttp.Asked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.round {
		all = append(all, idhttp.Asked{Name: s.peer, Answered: s.err == nil, Compared: s.err == nil && !s.blind, Offset: s.offset})
	}
	return all
}
