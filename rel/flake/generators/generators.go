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
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/host"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
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

// opener opens the durable source of a generator's ids, with the name of its mark.
type opener func(ctx context.Context, mark string, o flake.Options) (*opened, error)

// planner says how to open a generator with a number, and who it is.
type planner func(number uint64) (who identity, where place, open opener, err error)

// opened is a source of ids that can be closed.
type opened struct {
	formats.Source
	io.Closer
}

// sourceOf returns what a format's Open has returned as a source.
func sourceOf[G io.Closer](g G, err error, source func(G) formats.Generator) (*opened, error) {
	if err != nil {
		return nil, err
	}
	return &opened{source(g), g}, nil
}

// Set are the one named flake, whose mark has no name, and those of the tables
// [[generator]].
type Set struct {
	List    []Generator
	host    *host.Generators[*opened]
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
	if gs.host, err = host.Open[*opened](h); err != nil {
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
		_, where, _, err := plan(0)
		if err == nil {
			err = all.add(name, where, plan, etcd)
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
		if err := add(g.Name, g.Name, len(g.Etcd) > 0, uint8(value(g.Meta)), planOf(g, kept)); err != nil {
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
		if len(g.Etcd) == 0 && !slices.Contains(config.WorkerFormats, g.Format) {
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
	switch {
	case cfg.Random:
		return planKept(config.FormatFlake, "", kept), nil
	case cfg.Etcd:
		return func(number uint64) (identity, place, opener, error) {
			w := flake.NumberWorker(number)
			who := identity{w.String(), fmt.Sprintf("number %d of etcd", number)}
			return who, flakePlace(w, true), openWorker(config.FormatFlake, w), nil
		}, nil
	}
	w, from, err := worker(cfg, log)
	return func(uint64) (identity, place, opener, error) {
		return identity{w.String(), from}, flakePlace(w, cfg.WorkerID != nil), openWorker(config.FormatFlake, w), nil
	}, err
}

// planOf plans one of the configuration, with its own number or that of etcd.
func planOf(g config.Generator, kept keeper) planner {
	if g.Random {
		return planKept(g.Format, g.Name, kept)
	}
	return func(number uint64) (identity, place, opener, error) {
		n := int64(number)
		upper, lower := n>>5, n&31
		for _, key := range g.Etcd {
			switch key {
			case "worker_id":
				w := flake.NumberWorker(number)
				return identity{worker: w.String()}, workerPlace(g.Format, w, true), openWorker(g.Format, w), nil
			case "partition":
				g.Partition = &n
			case "id":
				g.ID = &n
			case "datacenter":
				g.Datacenter = &upper
			case "worker":
				g.Worker = &lower
			}
		}
		return plan(g)
	}
}

// open opens a generator and claims its place. A number of etcd has none on the machine: a node
// that is paused keeps its own, while its number is another's.
func (gs Set) open(ctx context.Context, mark string, etcd bool, plan planner) (g Generator, err error) {
	g.saves = idhttp.NewSaves()
	g.Server = &idserver.Server{Version: cli.Version, Started: time.Now()}
	g.release = func() error { return nil }
	var where place
	ids, err := gs.host.Add(ctx, mark, etcd, func(ctx context.Context, mark string, number uint64, bound flake.Bound) (*opened, error) {
		who, at, open, err := plan(number)
		if err != nil {
			return nil, err
		}
		if g.Who.worker == "" {
			g.Who, where = who, at
		}
		o := gs.options
		o.Saved, o.Marks, o.Bound = g.saves.Observe, gs.host.Marks(), bound
		return open(ctx, mark, o)
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
	g.Server.IDs = ids.Get().Source
	g.Server.From = func() idserver.Origin { return origin }
	g.release, err = claim(where, gs.options.Logger)
	return g, err
}

// plan returns how to open a configured generator, and its place in its format.
func plan(g config.Generator) (who identity, where place, open opener, err error) {
	switch g.Format {
	case config.FormatFlake, config.FormatUUIDv7, config.FormatULID:
		w, err := flake.ParseWorker(g.WorkerID.String())
		return identity{worker: w.String()}, workerPlace(g.Format, w, true), openWorker(g.Format, w), err
	case config.FormatSno:
		return planSno(g)
	}
	return planSnowflake(g)
}

func planSnowflake(g config.Generator) (who identity, where place, open opener, err error) {
	layout, o := layoutOf(g), snowflake.Options{RandomStart: g.RandomStart}
	if g.SequenceMask != nil {
		o.SequenceMask = int(*g.SequenceMask)
	}
	machine, err := machineOf(g)
	who.worker = fmt.Sprintf("id %d", machine)
	if g.ID == nil {
		who.worker = fmt.Sprintf("datacenter %d, worker %d", value(g.Datacenter), value(g.Worker))
	}
	if g.TimeBits != nil {
		who.worker += ", until " + layout.Last().Format(time.RFC3339)
	}
	if err == nil {
		_, err = layout.NewGenerator(machine, o)
	}
	if err != nil {
		return identity{}, place{}, nil, err
	}
	return who, snowflakePlace(layout, machine), func(ctx context.Context, mark string, d flake.Options) (*opened, error) {
		o.Clock, o.AllowableDowntime, o.Logger, o.Saved, o.Marks, o.Bound = d.Clock, d.AllowableDowntime, d.Logger, d.Saved, d.Marks, d.Bound
		ids, err := layout.Open(ctx, mark, machine, o)
		return sourceOf(ids, err, formats.Snowflake)
	}, nil
}

func machineOf(g config.Generator) (snowflake.Machine, error) {
	if g.ID != nil {
		return snowflake.Machine(*g.ID), nil
	}
	return layoutOf(g).Machine(value(g.Datacenter), value(g.Worker))
}

func layoutOf(g config.Generator) snowflake.Layout {
	layout := snowflake.Idgen
	if g.Format == config.FormatSnowflake {
		time, machine, sequence := g.Bits()
		layout = snowflake.Layout{Time: uint8(time), Worker: uint8(machine), Sequence: uint8(sequence), Epoch: snowflake.Twitter.Epoch}
		if g.ID == nil && !slices.Contains(g.Etcd, "id") {
			layout.Datacenter, layout.Worker = 5, 5
		}
	}
	if g.Epoch != nil {
		layout.Epoch = uint64(g.Epoch.UnixMilli())
	}
	return layout
}

func planSno(g config.Generator) (who identity, where place, open opener, err error) {
	low, high := g.Sequences()
	s := &sno.Snapshot{SequenceMin: uint16(low), SequenceMax: uint16(high)}
	s.Partition.PutUint16(uint16(value(g.Partition)))
	who.worker = fmt.Sprintf("partition %d", s.Partition.AsUint16())
	return who, snoPlace(s), func(ctx context.Context, mark string, o flake.Options) (*opened, error) {
		ids, err := sno.Open(ctx, mark, s, sno.Options{Clock: o.Clock, AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved, Marks: o.Marks, Bound: o.Bound})
		return sourceOf(ids, err, formats.Sno)
	}, nil
}

func value(option *int64) int {
	if option == nil {
		return 0
	}
	return int(*option)
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
	p := host.Plan[*opened]{Timeout: cfg.Etcd.StartTimeout, Advise: func(err error) error { return credentials.Advise(err, cfg.Etcd) }}
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
	p.Generators = func(s *host.Generators[*opened]) (all []host.Planned[*opened]) {
		kept := func(mark string) (flake.Worker, string, error) { return keptWorker(s.Marks(), mark, h.Path, quiet) }
		add := func(mark string, etcd bool, plan planner) {
			o := flake.Options{AllowableDowntime: cfg.Flake.AllowableDowntime, Clock: s.Clock(), Marks: s.Marks()}
			open := func(ctx context.Context, mark string, number uint64, bound flake.Bound) (*opened, error) {
				_, _, open, err := plan(number)
				if err != nil {
					return nil, err
				}
				o.Bound = bound
				return open(ctx, mark, o)
			}
			all = append(all, host.Planned[*opened]{Name: mark, Numbered: etcd, Open: open})
		}
		first, _ := planFirst(cfg.Flake, kept, quiet) // which checkWorkers has tried
		add("", cfg.Flake.Etcd, first)
		for _, g := range cfg.Generators {
			add(g.Name, len(g.Etcd) > 0, planOf(g, kept))
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
		who, where, _, err := plan(0)
		if err == nil && !random {
			err = all.add(name, where, plan, etcd)
		}
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
		if fault := add(g.Name, label, g.Random, len(g.Etcd) > 0, planOf(g, kept)); fault != nil {
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
		return openMadeUp(g.Format, flake.RandomWorker())
	}
	h, err := host.Open[*opened](host.Config{Path: path, Log: log})
	if err != nil {
		return nil, nil, err
	}
	gs := Set{host: h, options: flake.Options{AllowableDowntime: allDowntime, Logger: log}}
	if names := h.Marks().Names(); len(names) > 0 && names[len(names)-1] != "" {
		err := fmt.Errorf("-mark %s: a node keeps the marks of its generators in it, such as %s: give it a file of its own", path, names[len(names)-1])
		return nil, nil, errors.Join(err, gs.Stop())
	}
	kept := func(mark string) (flake.Worker, string, error) { return keptWorker(h.Marks(), mark, path, log) }
	g.Name = "" // so has its mark no name
	opened, err := gs.open(ctx, g.Name, false, planOf(g, kept))
	if err != nil {
		return nil, nil, errors.Join(err, gs.Stop())
	}
	gs.List = append(gs.List, opened)
	return opened.Server.IDs, gs.Stop, nil
}

// openMadeUp returns what makes ids of a worker that is made up, and keeps nothing.
func openMadeUp(format string, w flake.Worker) (ids formats.Source, end func() error, err error) {
	switch format {
	case config.FormatUUIDv7:
		ids, err := uuidv7.NewGenerator(w, uuidv7.Options{})
		return formats.UUIDv7(ids), ids.Close, err
	case config.FormatULID:
		ids, err := ulid.NewGenerator(w, ulid.Options{})
		return formats.ULID(ids), ids.Close, err
	}
	own, err := flake.NewGenerator(w, flake.Options{})
	return formats.Flake(own), own.Close, err
}

// WorkerOf is as whom a generator makes ids; nil if its configuration does not tell.
func WorkerOf(g config.Generator) func() uint64 {
	if g.Random || len(g.Etcd) > 0 {
		return nil
	}
	var who uint64
	switch g.Format {
	case config.FormatFlake, config.FormatUUIDv7, config.FormatULID:
		w, err := flake.ParseWorker(g.WorkerID.String())
		if err != nil {
			return nil
		}
		who = uint64(w)
	case config.FormatSno:
		who = uint64(value(g.Partition))
	case config.FormatSnowflake, config.FormatIdgen:
		m, err := machineOf(g)
		if err != nil {
			return nil
		}
		who = uint64(m)
	}
	return func() uint64 { return who }
}

// FormatOf is the format of a generator's ids.
func FormatOf(g config.Generator) *formats.Format {
	switch g.Format {
	case config.FormatFlake:
		return formats.KindOf("flake").Format(nil)
	case config.FormatSno:
		return formats.KindOf("sno").Format(nil)
	case config.FormatUUIDv7:
		return formats.KindOf("uuidv7").Format(nil)
	case config.FormatULID:
		return formats.KindOf("ulid").Format(nil)
	}
	return formats.SnowflakeFormat(layoutOf(g))
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

// planKept plans a generator whose worker id is kept beside its mark.
func planKept(format, mark string, kept keeper) planner {
	var w flake.Worker
	var from string
	known := false
	return func(uint64) (_ identity, _ place, _ opener, err error) {
		if !known {
			w, from, err = kept(mark)
			known = err == nil
		}
		return identity{w.String(), from}, workerPlace(format, w, true), openWorker(format, w), err
	}
}

// openWorker opens a generator of a format whose ids have a worker id.
func openWorker(format string, w flake.Worker) opener {
	return func(ctx context.Context, mark string, o flake.Options) (*opened, error) {
		switch format {
		case config.FormatUUIDv7:
			ids, err := uuidv7.Open(ctx, mark, w, o)
			return sourceOf(ids, err, formats.UUIDv7)
		case config.FormatULID:
			ids, err := ulid.Open(ctx, mark, w, o)
			return sourceOf(ids, err, formats.ULID)
		}
		ids, err := flake.Open(ctx, mark, w, o)
		return sourceOf(ids, err, formats.Flake)
	}
}
