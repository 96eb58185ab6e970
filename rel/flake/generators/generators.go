// Package generators opens the generators of a configuration: each with its number, its mark, and
// the claim that keeps others on the machine from making the same ids.
//
// Start at [Open].
package generators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/host"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/iderl"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/credentials"
)

// Generator hands out ids under a name.
type Generator struct {
	Name    string
	Server  *idserver.Server
	saves   *idhttp.Saves
	Who     identity
	release func() error
}

// identity is what a generator makes ids as.
type identity struct {
	worker string // for people: "02:00:00:00:00:01", "id 5"
	from   string // where that is from, or empty: the generator's table
}

func (i identity) String() string {
	if i.from == "" {
		return i.worker
	}
	return i.worker + " (" + i.from + ")"
}

// plan is what a generator is with a number, and how to open it.
type plan struct {
	formats.Plan
	who   identity
	place place
}

// planner plans a generator with a number.
type planner func(number uint64) (plan, error)

// Set are the one named flake, whose mark has no name, and those of the tables
// [[generator]].
type Set struct {
	List    []Generator
	host    *host.Generators[formats.Generator]
	options flake.Options
}

// Open opens all generators of a configuration; store is nil if none has a number of etcd.
func Open(ctx context.Context, cfg config.Config, store *etcd.Store, log *slog.Logger) (gs Set, err error) {
	kept := func(mark string) (flake.Worker, string, error) {
		return keptWorker(gs.host.Marks(), mark, cfg.Flake.TimestampPath, log)
	}
	first, err := planFirst(cfg.Flake, kept, log)
	if err != nil {
		return gs, err
	}
	gs.options = flake.Options{AllowableDowntime: cfg.Flake.AllowableDowntime, Logger: log, Clock: clockOf(cfg.Flake)}
	h := host.Config{Path: cfg.Flake.TimestampPath, Log: log, Clock: gs.options.Clock}
	if store != nil {
		h.Numbers = &workers.Config{Store: store, Prefix: cfg.Etcd.Prefix, Last: cfg.MaxNumber(), Hold: cfg.Etcd.Hold, Name: cfg.Node.Name, Wait: cfg.Etcd.Wait}
	}
	if gs.host, err = host.Open[formats.Generator](h); err != nil {
		return gs, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, gs.Stop())
		}
	}()
	if store != nil {
		if err := gs.claim(ctx, cfg.Etcd.StartTimeout); err != nil {
			return gs, credentials.Advise(err, cfg.Etcd)
		}
	}
	all := places{most: cfg.MaxNumber()}
	add := func(name, mark string, etcd bool, meta uint8, plan planner) error {
		p, err := plan(0)
		if err == nil {
			err = all.add(name, p.place, plan, etcd)
		}
		if err != nil {
			return err
		}
		g, err := gs.open(ctx, mark, etcd, plan)
		if err != nil {
			return err
		}
		g.Name, g.Server.Meta = name, meta
		gs.List = append(gs.List, g)
		return nil
	}
	if err := add("flake", "", cfg.Flake.Etcd, 0, first); err != nil {
		return gs, err
	}
	for _, g := range cfg.Generators {
		if err := add(g.Name, g.Name, len(g.Etcd) > 0, uint8(g.Options["meta"]), planOf(g, g.Name, kept)); err != nil {
			return gs, fmt.Errorf("generator %s: %w", g.Name, err)
		}
	}
	if own := handNumbered(cfg.Generators); len(own) > 0 {
		log.Info("numbers set by hand: nothing compares machines, so give each machine others, or take them from etcd", "generator", strings.Join(own, ", "))
	}
	gs.host.Follow()
	return gs, nil
}

// handNumbered returns the names of the generators whose few bits for a machine are set by hand.
func handNumbered(all []config.Generator) (names []string) {
	for _, g := range all {
		if len(g.Etcd) == 0 && !g.Kind().Random() {
			names = append(names, g.Name)
		}
	}
	return names
}

// claim claims a number of etcd; a timeout of 0 means that it waits for ever.
func (gs Set) claim(ctx context.Context, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("etcd.start_timeout, %v, has passed", timeout))
		defer cancel()
	}
	return gs.host.Claim(ctx)
}

// clockOf returns the clock of all generators; nil: that of the machine as it is set.
func clockOf(cfg config.Flake) func() uint64 {
	if cfg.Clock == config.ClockMonotonic {
		return flake.MonotonicClock()
	}
	return nil
}

// planFirst plans the generator of the name flake.
func planFirst(cfg config.Flake, kept keeper, log *slog.Logger) (planner, error) {
	g := cfg.Generator()
	if cfg.Random {
		return planOf(g, "", kept), nil
	}
	w, from, err := flake.Worker(0), "", error(nil)
	if !cfg.Etcd {
		w, from, err = worker(cfg, log)
		g.Options = formats.Options{"worker_id": int64(w)}
	}
	own := planOf(g, "", kept)
	return func(number uint64) (plan, error) {
		p, err := own(number)
		p.who.from, p.place.chosen = from, cfg.Etcd || cfg.WorkerID != nil
		if cfg.Etcd {
			p.who.from = fmt.Sprintf("number %d of etcd", number)
		}
		return p, err
	}, err
}

// planOf plans one of the configuration, with its own number, that of etcd, or one that is kept
// beside its mark.
func planOf(g config.Generator, mark string, kept keeper) planner {
	of := func(o formats.Options, from string) (plan, error) {
		p, err := g.Kind().Plan(o)
		if err != nil {
			return plan{}, err
		}
		_, err = p.Open(context.Background(), "", flake.Options{}) // fails if no id has the time that it is
		return plan{p, identity{p.Who, from}, place{p.Place, true}}, err
	}
	if !g.Random {
		return func(number uint64) (plan, error) { return of(g.Numbered(number), "") }
	}
	var own formats.Options
	var from string
	return func(uint64) (plan, error) {
		if own == nil {
			w, keptIn, err := kept(mark)
			if err != nil {
				return plan{}, err
			}
			own, from = formats.Options{g.Kind().Numbers[0][0]: int64(w)}, keptIn
		}
		return of(own, from)
	}
}

// open opens a generator and claims its place. A number of etcd has none on the machine: a node
// that is paused keeps its own, while its number is another's.
func (gs Set) open(ctx context.Context, mark string, etcd bool, plan planner) (g Generator, err error) {
	g.saves = idhttp.NewSaves()
	g.Server = &idserver.Server{Version: cli.Version, Started: time.Now()}
	g.release = func() error { return nil }
	var where place
	ids, err := gs.host.Add(ctx, mark, etcd, func(ctx context.Context, mark string, number uint64, bound flake.Bound) (formats.Generator, error) {
		p, err := plan(number)
		if err != nil {
			return nil, err
		}
		if g.Who.worker == "" {
			g.Who, where = p.who, p.place
		}
		o := gs.options
		o.Saved, o.Marks, o.Bound = g.saves.Observe, gs.host.Marks(), bound
		return p.Open(ctx, mark, o)
	})
	if err != nil {
		return g, err
	}
	if etcd {
		source := numbered{ids, gs.host.Owner()}
		g.Server.IDs, g.Server.From = source, source.origin
		return g, nil
	}
	origin := idserver.Origin{From: cmp.Or(g.Who.from, "configuration")}
	g.Server.IDs = ids.Get()
	g.Server.From = func() idserver.Origin { return origin }
	g.release, err = claim(where, gs.options.Logger)
	return g, err
}

// Servers returns the generators as gen_servers.
func (gs Set) Servers(log *slog.Logger) (servers []node.Server) {
	for _, g := range gs.List {
		servers = append(servers, node.Server{Name: etf.Atom(g.Name), Module: "flake_server", Handler: &iderl.Handler{Server: g.Server, Log: log}})
	}
	return servers
}

// Doors returns the generators as HTTP offers them.
func (gs Set) Doors(n *node.Node) (doors []idhttp.Generator) {
	for _, g := range gs.List {
		doors = append(doors, idhttp.Generator{
			Name: g.Name, Server: g.Server, Saves: g.saves, Running: func() bool { return n.Running(g.Name) },
		})
	}
	return doors
}

// Stop closes all; their saved times are then exact.
func (gs Set) Stop() error {
	err := gs.host.Close()
	for _, g := range gs.List {
		err = errors.Join(err, g.release())
	}
	return err
}

// Rehearse does as openGenerators, but in memory.
func Rehearse(ctx context.Context, cfg config.Config) (report host.Report, err error) {
	p := host.Plan[formats.Generator]{Timeout: cfg.Etcd.StartTimeout, Advise: func(err error) error { return credentials.Advise(err, cfg.Etcd) }}
	if cfg.Flake.TimestampPath == "" {
		p.MakesFolder = true
		if cfg.Flake.TimestampPath, err = cli.DefaultTimestamp(); err != nil {
			return report, err
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	if _, err := Check(cfg, cfg.Flake.TimestampPath, quiet); err != nil {
		return report, err
	}
	h := host.Config{Path: cfg.Flake.TimestampPath, Clock: clockOf(cfg.Flake)}
	if cfg.Etcd.On {
		store, _, err := credentials.OpenEtcd(cfg.Etcd)
		if err != nil {
			return report, err
		}
		h.Numbers = &workers.Config{
			Store: store, Prefix: cfg.Etcd.Prefix, Last: cfg.MaxNumber(), Hold: cfg.Etcd.Hold, Name: cfg.Node.Name, Wait: cfg.Etcd.Wait,
		}
	}
	p.Generators = func(s *host.Generators[formats.Generator]) (all []host.Planned[formats.Generator]) {
		kept := func(mark string) (flake.Worker, string, error) { return keptWorker(s.Marks(), mark, h.Path, quiet) }
		add := func(mark string, etcd bool, plan planner) {
			o := flake.Options{AllowableDowntime: cfg.Flake.AllowableDowntime, Clock: s.Clock(), Marks: s.Marks()}
			open := func(ctx context.Context, mark string, number uint64, bound flake.Bound) (formats.Generator, error) {
				p, err := plan(number)
				if err != nil {
					return nil, err
				}
				o.Bound = bound
				return p.Open(ctx, mark, o)
			}
			all = append(all, host.Planned[formats.Generator]{Name: mark, Numbered: etcd, Open: open})
		}
		first, _ := planFirst(cfg.Flake, kept, quiet) // which checkWorkers has tried
		add("", cfg.Flake.Etcd, first)
		for _, g := range cfg.Generators {
			add(g.Name, len(g.Etcd) > 0, planOf(g, g.Name, kept))
		}
		return all
	}
	return host.Check(ctx, h, p), nil
}

// Check tells which workers the generators would have, as far as that is known
// before a start.
func Check(cfg config.Config, path string, log *slog.Logger) (told []string, err error) {
	kept := func(string) (flake.Worker, string, error) { return 0, path, nil } // not known before the file is locked
	first, err := planFirst(cfg.Flake, kept, log)
	if err != nil {
		return nil, err
	}
	all := places{most: cfg.MaxNumber()}
	add := func(name, label string, random, etcd bool, plan planner) error {
		p, err := plan(0)
		if err == nil && !random {
			err = all.add(name, p.place, plan, etcd)
		}
		who := p.who
		switch {
		case err != nil:
			return err
		case random:
			who = identity{worker: "random, kept in " + path}
		case etcd:
			who = identity{worker: "a number of etcd"}
		}
		told = append(told, label+who.String())
		return nil
	}
	err = add("flake", "worker id  ", cfg.Flake.Random, cfg.Flake.Etcd, first)
	for _, g := range cfg.Generators {
		label := fmt.Sprintf("generator  %s: %s, ", g.Name, g.Format)
		if fault := add(g.Name, label, g.Random, len(g.Etcd) > 0, planOf(g, g.Name, kept)); fault != nil {
			err = errors.Join(err, fmt.Errorf("generator %s: %w", g.Name, fault))
		}
	}
	return told, err
}

// allDowntime is any time between two runs.
const allDowntime = math.MaxInt64

// OpenLocal returns what makes ids of a generator, until end. The mark is in the file at
// path; without a path nothing is kept.
func OpenLocal(ctx context.Context, g config.Generator, path string, log *slog.Logger) (ids formats.Source, end func() error, err error) {
	if path == "" {
		plan, err := planOf(g, "", func(string) (flake.Worker, string, error) { return flake.RandomWorker(), "", nil })(0)
		if err != nil {
			return nil, nil, err
		}
		ids, err := plan.Open(ctx, "", flake.Options{})
		return ids, ids.Close, err
	}
	h, err := host.Open[formats.Generator](host.Config{Path: path, Log: log})
	if err != nil {
		return nil, nil, err
	}
	gs := Set{host: h, options: flake.Options{AllowableDowntime: allDowntime, Logger: log}}
	if names := h.Marks().Names(); len(names) > 0 && names[len(names)-1] != "" {
		err := fmt.Errorf("-mark %s: a node keeps the marks of its generators in it, such as %s: give it a file of its own", path, names[len(names)-1])
		return nil, nil, errors.Join(err, gs.Stop())
	}
	kept := func(mark string) (flake.Worker, string, error) { return keptWorker(h.Marks(), mark, path, log) }
	opened, err := gs.open(ctx, "", false, planOf(g, "", kept))
	if err != nil {
		return nil, nil, errors.Join(err, gs.Stop())
	}
	gs.List = append(gs.List, opened)
	return opened.Server.IDs, gs.Stop, nil
}

// WorkerOf is as whom a generator makes ids; nil if its configuration does not tell.
func WorkerOf(g config.Generator) func() uint64 {
	if g.Random || len(g.Etcd) > 0 {
		return nil
	}
	p, err := g.Kind().Plan(g.Options)
	if err != nil {
		return nil
	}
	return func() uint64 { return p.Worker }
}

// worker returns the worker id of the configuration, or of its network interface. It warns
// of one that may not be this machine's for good, or not its alone.
func worker(cfg config.Flake, log *slog.Logger) (w flake.Worker, from string, err error) {
	if cfg.WorkerID != nil {
		w, err = flake.ParseWorker(cfg.WorkerID.String())
		return w, "worker_id", err
	}
	card, err := flake.NetworkCard(cfg.Interface)
	if err != nil {
		return w, "", err
	}
	if len(card.Doubts) > 0 {
		log.Warn(`another machine may have this MAC, or this one another after its next boot: set flake.worker_id to one that no other node has, or to "random"`,
			"interface", card.Name, "worker", card.Worker, "why", "it "+strings.Join(card.Doubts, ", "))
	}
	return card.Worker, "interface " + card.Name, nil
}

// keeper gives the worker id that is kept beside a mark.
type keeper func(mark string) (w flake.Worker, from string, err error)

func keptWorker(m *flake.Marks, mark, path string, log *slog.Logger) (w flake.Worker, from string, err error) {
	w, made, err := flake.KeptWorker(m, mark)
	if made {
		log.Info("a worker id is made up, and kept in the file of the timestamp: without that, the next start makes up another",
			"worker", w, "file", path)
	}
	return w, "random, kept in " + path, err
}
