package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/idserver"
)

const (
	// giveBack is how long a stop waits for etcd.
	giveBack = 5 * time.Second

	// again is how soon a generator that could not be opened is tried again.
	again = time.Second
)

// numbers is the number that etcd has dealt out to the node, and the generators that
// have it.
type numbers struct {
	store  *etcd.Store
	owner  *workers.Owner
	log    *slog.Logger
	claim  *workers.Claim // that the generators have
	all    []*numbered
	cancel context.CancelFunc
	done   chan struct{}
}

// openNumbers claims a number.
func openNumbers(ctx context.Context, cfg config.Config, store *etcd.Store, clock func() uint64, log *slog.Logger) (n *numbers, err error) {
	n = &numbers{store: store, log: log, done: make(chan struct{})}
	if cfg.Etcd.StartTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cfg.Etcd.StartTimeout, fmt.Errorf("etcd.start_timeout, %v, has passed", cfg.Etcd.StartTimeout))
		defer cancel()
	}
	memory, err := workers.OpenMemory(cfg.Flake.TimestampPath + ".number")
	if err != nil {
		return nil, err
	}
	n.owner, err = workers.Open(ctx, workers.Config{
		Store: store, Prefix: cfg.Etcd.Prefix, Last: cfg.MaxNumber(), Hold: cfg.Etcd.Hold, Name: cfg.Node.Name,
		Memory: memory, Slow: cfg.Etcd.ClaimWait, Wait: cfg.Etcd.Wait, Clock: clock, Log: log,
	})
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	n.claim, _ = n.owner.Claim()
	return n, nil
}

// passwordOf reads the password of etcd's user; without a file there is none.
func passwordOf(cfg config.Etcd) (password string, err error) {
	if cfg.PasswordFile == "" {
		return "", nil
	}
	if password, err = config.Secret(cfg.PasswordFile); err != nil {
		return "", fmt.Errorf("etcd.password_file %q: %w", cfg.PasswordFile, err)
	}
	return password, nil
}

// openEtcd makes a store as the configuration says, with the password that is in its file
// now.
func openEtcd(cfg config.Etcd) (store *etcd.Store, password string, err error) {
	if password, err = passwordOf(cfg); err != nil {
		return nil, "", err
	}
	c := etcd.Config{Endpoints: cfg.Endpoints, User: cfg.User, Password: password}
	if cfg.CA != "" || cfg.Cert != "" {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if cfg.CA != "" {
		pem, err := os.ReadFile(cfg.CA)
		if err != nil {
			return nil, "", fmt.Errorf("etcd.ca: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return nil, "", fmt.Errorf("etcd.ca %q: a certificate in PEM wanted", cfg.CA)
		}
	}
	if cfg.Cert != "" {
		load := func() (*tls.Certificate, error) { // again for each connection, as they are renewed
			pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return nil, "", fmt.Errorf("etcd.cert, etcd.key: %w", err)
		}
		c.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	store, err = etcd.New(c)
	return store, password, err
}

// add has a generator have the number, and those that follow it.
func (n *numbers) add(ctx context.Context, mark string, plan planner, o flake.Options) (*numbered, error) {
	g := &numbered{numbers: n, mark: mark, plan: plan, options: o}
	if err := g.open(ctx, n.claim); err != nil {
		return nil, err
	}
	n.all = append(n.all, g)
	return g, nil
}

// follow has all generators have the number that there is.
func (n *numbers) follow() {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() {
		defer close(n.done)
		for ctx.Err() == nil {
			claim, changed := n.owner.Claim()
			if claim != n.claim {
				n.move(ctx, claim, changed)
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
}

// move opens all generators anew, with another number, until that is lost as well.
func (n *numbers) move(ctx context.Context, claim *workers.Claim, changed <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	n.claim = claim
	for _, g := range n.all {
		for err := g.reopen(ctx, claim); err != nil && ctx.Err() == nil; err = g.reopen(ctx, claim) {
			n.log.Error("a generator cannot go on with another number yet", "generator", g.name(), "err", err)
			select {
			case <-time.After(again):
			case <-ctx.Done():
			}
		}
	}
}

func (n *numbers) ready() error {
	claim, _ := n.owner.Claim()
	left := time.Until(time.UnixMilli(int64(claim.Milli()))).Round(time.Second)
	if _, err := n.owner.State(); err != nil && left < n.owner.Hold/2 {
		return fmt.Errorf("ids go on for %v, until etcd answers: %w", max(left, 0), err)
	}
	return nil
}

func (n *numbers) origin() idserver.Origin {
	claim, _ := n.owner.Claim()
	_, err := n.owner.State()
	return idserver.Origin{From: "etcd", Until: time.UnixMilli(int64(claim.Milli())), Err: err}
}

// halt ends the following, before the generators end.
func (n *numbers) halt() {
	if n.cancel != nil {
		n.cancel()
		<-n.done
	}
}

// stop gives the number back, when the generators have ended.
func (n *numbers) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), giveBack)
	defer cancel()
	last := n.last()
	if err := n.owner.Close(ctx, last); err != nil {
		n.log.Warn("the number was not given back: others wait for its mark", "err", err)
	}
}

// last is the latest time that any of the ids has; 0: it is not known.
func (n *numbers) last() (last uint64) {
	for _, g := range n.all {
		milli, known := g.source().last()
		if !known {
			return 0
		}
		last = max(last, milli)
	}
	return last
}

// planner says how to open a generator with a number, and who it is.
type planner func(number uint64) (who string, where place, open opener, err error)

// numbered is a source of ids whose number is another at times.
type numbered struct {
	numbers *numbers
	mark    string
	plan    planner
	options flake.Options

	now    atomic.Pointer[opened]
	moving atomic.Bool
	who    string
}

func (g *numbered) open(ctx context.Context, number *workers.Claim) error {
	// No place is claimed on the machine: one that is paused keeps its own, while
	// its number is another's.
	who, _, open, err := g.plan(number.Number())
	if err != nil {
		return err
	}
	o := g.options
	o.Bound = number
	s, err := open(ctx, g.mark, o)
	if err != nil {
		return err
	}
	g.who = who
	g.now.Store(s)
	g.moving.Store(false)
	return nil
}

// reopen ends what there is first.
func (g *numbered) reopen(ctx context.Context, claim *workers.Claim) error {
	g.moving.Store(true)
	if err := g.source().Close(); err != nil {
		g.options.Logger.Warn("a generator has ended, to go on with another number", "generator", g.name(), "err", err)
	}
	return g.open(ctx, claim)
}

var errMoving = fmt.Errorf("%w: its number is another's by now, and it has no other yet", flake.ErrTimestampNotSaved)

// name is the generator's, whose mark has none if it is the first.
func (g *numbered) name() string { return cmp.Or(g.mark, "flake") }

// explain says of a generator that has ended that another follows.
func (g *numbered) explain(err error) error {
	if err != nil && errors.Is(err, flake.ErrClosed) && g.moving.Load() {
		return errMoving
	}
	return err
}

func (g *numbered) source() *opened { return g.now.Load() }

// The methods of idserver.Source.

func (g *numbered) Reserve(ctx context.Context, n int, meta uint8) (idserver.Run, error) {
	run, err := g.source().Reserve(ctx, n, meta)
	return run, g.explain(err)
}

// Ready fails before there are no ids: when less is left of the mark than there ever is
// while etcd answers.
func (g *numbered) Ready() error {
	if err := g.explain(g.source().Ready()); err != nil {
		return err
	}
	return g.numbers.ready()
}

func (g *numbered) Format() idserver.Format               { return g.source().Format() }
func (g *numbered) Last() (milli uint64, sequence uint32) { return g.source().Last() }
func (g *numbered) Behind() time.Duration                 { return g.source().Behind() }
func (g *numbered) Worker() uint64                        { return g.source().Worker() }
func (g *numbered) Waits() uint64                         { return g.source().Waits() }
func (g *numbered) PerTick() int                          { return g.source().PerTick() }
func (g *numbered) Mark() time.Time                       { return g.source().Mark() }
func (g *numbered) LastSaved() (time.Time, error)         { return g.source().LastSaved() }
