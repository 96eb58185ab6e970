// Package setup opens the generators of a configuration: each with its number, its mark,
// and a claim that keeps other programs on the machine from making the same ids.
//
// Start at [Open].
package setup

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
	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/iderl"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/latency"
	"github.com/flake-go/flake/rel/flake/cli"
)

// Set holds the generator named flake and those of the [[generator]] tables.
type Set struct {
	List    []*Generator
	host    *generators.Set[formats.Generator]
	options flake.Options
}

// Open opens all generators of a configuration. store must be nil if no number is assigned.
func Open(ctx context.Context, cfg config.Config, store workers.Store, log *slog.Logger) (gs Set, err error) {
	all, err := plans(cfg, log)
	if err != nil {
		return gs, err
	}
	h := hostOf(cfg, store)
	h.Log = log
	gs.options = flake.Options{AllowableDowntime: cfg.Flake.AllowableDowntime, Logger: log, Clock: h.Clock}
	if gs.host, err = generators.Open[formats.Generator](h); err != nil {
		return gs, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, gs.Stop())
		}
	}()
	if store != nil {
		limit := cfg.Numbers.StartTimeout
		start, cancel := context.WithTimeoutCause(ctx, cmp.Or(limit, math.MaxInt64), // 0: no limit
			fmt.Errorf("numbers.start_timeout, %v, has passed", limit))
		defer cancel()
		if err := gs.host.Claim(start); err != nil {
			return gs, cfg.Numbers.Advise(err)
		}
	}
	ps := disjoint{maxNumber: cfg.MaxNumber()}
	for _, g := range all {
		g.marks = gs.host.Marks()
		err := ps.add(g)
		if err == nil {
			err = gs.open(ctx, g)
		}
		if err != nil {
			return gs, g.fault(err)
		}
	}
	if own := handNumbered(cfg.Generators); len(own) > 0 {
		log.Info("numbers set by hand are not compared across machines: "+
			"give each machine its own, or let a store assign them",
			"generator", strings.Join(own, ", "))
	}
	gs.host.Follow()
	return gs, nil
}

// hostOf returns the configuration for package host. store must be nil if no number is assigned.
func hostOf(cfg config.Config, store workers.Store) generators.Config {
	h := generators.Config{Path: cfg.Flake.TimestampPath}
	if cfg.Flake.Clock == config.ClockMonotonic {
		h.Clock = flake.MonotonicClock()
	}
	if store != nil {
		h.Fits = func(number uint64, all []workers.Entry) error { return fits(cfg, number, all) }
		h.Numbers = &workers.Config{
			Store: store, Prefix: cfg.Numbers.Prefix, Last: cfg.MaxNumber(), Hold: cfg.Numbers.Hold,
			Name: cfg.Node.Name, Wait: cfg.Numbers.Wait,
		}
	}
	return h
}

// handNumbered returns the names of the generators whose number has few bits and was set by hand.
func handNumbered(all []config.Generator) (names []string) {
	for _, g := range all {
		if byHand(g) {
			names = append(names, g.Name)
		}
	}
	return names
}

func byHand(g config.Generator) bool { return len(g.Assigned) == 0 && !g.Kind().Random() }

// open opens a generator and claims its range. A generator with an assigned number claims no range on the
// machine: a paused node would keep the claim, while its number may already belong to another node.
func (gs *Set) open(ctx context.Context, g *Generator) error {
	g.saves, g.release = new(latency.Histogram), func() error { return nil }
	g.Server = &idserver.Server{Version: cli.Version, Started: time.Now(), Meta: uint8(g.Options["meta"])}
	o := gs.options
	o.Saved, o.Marks = func(took time.Duration) { g.saves.Add(took, 1) }, gs.host.Marks()
	ids, err := gs.host.Add(ctx, g.mark, g.assigned(), g.opener(o))
	if err != nil {
		return err
	}
	if g.assigned() {
		source := numbered{ids, gs.host.Owner()}
		g.Server.IDs, g.Server.From = source, source.origin
	} else {
		origin := idserver.Origin{From: cmp.Or(g.from, "configuration")}
		g.Server.IDs, g.Server.From = ids.Get(), func() idserver.Origin { return origin }
		if g.release, err = claim(g.ids, g.chosen, gs.options.Logger); err != nil {
			return err
		}
	}
	gs.List = append(gs.List, g)
	return nil
}

// numbered is a Source whose number is assigned and can change.
type numbered struct {
	ids   *generators.Generator[formats.Generator]
	owner *workers.Owner
}

// Reserve tries again if the number changed while it ran.
func (g numbered) Reserve(ctx context.Context, n int, meta uint8) (formats.Run, error) {
	now := g.ids.Get()
	run, err := now.Reserve(ctx, n, meta)
	if errors.Is(err, flake.ErrClosed) && g.ids.Get() != now {
		run, err = g.ids.Get().Reserve(ctx, n, meta)
	}
	return run, g.ids.Explain(err)
}

// Ready returns an error before ids run out: when the store does not answer and the claim has less than half of
// Hold left. While the store answers, the claim always has more left.
func (g numbered) Ready() error {
	if err := g.ids.Explain(g.ids.Get().Ready()); err != nil {
		return err
	}
	return g.held()
}

func (g numbered) held() error {
	claim, _ := g.owner.Claim()
	left := time.Until(time.UnixMilli(int64(claim.Milli()))).Round(time.Second)
	if _, err := g.owner.State(); err != nil && left < g.owner.Hold/2 {
		return endsSoon{fmt.Errorf("ids run out in %v unless the store answers: %w", max(left, 0), err)}
	}
	return nil
}

// endsSoon is the error of a mark that no longer moves in the store, whatever the reason.
type endsSoon struct{ error }

func (e endsSoon) Unwrap() error      { return e.error }
func (endsSoon) Is(target error) bool { return target == flake.ErrTimestampNotSaved }

func (g numbered) origin() idserver.Origin {
	claim, _ := g.owner.Claim()
	_, err := g.owner.State()
	return idserver.Origin{From: "store", Until: time.UnixMilli(int64(claim.Milli())), Err: err}
}

func (g numbered) Format() *formats.Format               { return g.ids.Get().Format() }
func (g numbered) Last() (milli uint64, sequence uint32) { return g.ids.Get().Last() }
func (g numbered) Behind() time.Duration                 { return g.ids.Get().Behind() }
func (g numbered) Worker() uint64                        { return g.ids.Get().Worker() }
func (g numbered) Waits() uint64                         { return g.ids.Get().Waits() }
func (g numbered) PerTick() int                          { return g.ids.Get().PerTick() }
func (g numbered) Mark() time.Time                       { return g.ids.Get().Mark() }
func (g numbered) LastSaved() (time.Time, error)         { return g.ids.Get().LastSaved() }

// Children returns the generators as gen_servers.
func (gs Set) Children(log *slog.Logger) (children []node.Child) {
	for _, g := range gs.List {
		handler := &iderl.Handler{Server: g.Server, Log: log}
		children = append(children, node.Child{Name: etf.Atom(g.Name), Module: "flake_server", Handler: handler})
	}
	return children
}

// Doors returns the generators in the form that the HTTP door needs.
func (gs Set) Doors(n *node.Node) (doors []idhttp.Generator) {
	for _, g := range gs.List {
		doors = append(doors, idhttp.Generator{
			Name: g.Name, Server: g.Server, Saves: g.saves, Running: func() bool { return n.Running(g.Name) },
		})
	}
	return doors
}

// Stop closes all generators. Their saved marks are then exact.
func (gs Set) Stop() error {
	err := gs.host.Close()
	for _, g := range gs.List {
		err = errors.Join(err, g.release())
	}
	return err
}

// Rehearse does in memory what [Open] would do.
func Rehearse(ctx context.Context, cfg config.Config) (report generators.Report, err error) {
	p := generators.Plan[formats.Generator]{Timeout: cfg.Numbers.StartTimeout}
	p.Advise = cfg.Numbers.Advise
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
	var store workers.Store
	if cfg.Assigned() {
		if store, _, err = cfg.Numbers.Open(true); err != nil {
			return report, err
		}
	}
	p.Generators = func(s *generators.Set[formats.Generator]) (all []generators.Planned[formats.Generator]) {
		planned, _ := plans(cfg, quiet) // Check found no error
		o := flake.Options{AllowableDowntime: cfg.Flake.AllowableDowntime, Clock: s.Clock(), Marks: s.Marks()}
		for _, g := range planned {
			g.marks = s.Marks()
			all = append(all, generators.Planned[formats.Generator]{Name: g.mark, Numbered: g.assigned(), Open: g.opener(o)})
		}
		return all
	}
	return generators.Check(ctx, hostOf(cfg, store), p), nil
}

// Check returns a line for each generator, with its worker if the worker is known before the node starts.
func Check(cfg config.Config, path string, log *slog.Logger) (lines []string, err error) {
	all, err := plans(cfg, log)
	if err != nil {
		return nil, err
	}
	ps := disjoint{maxNumber: cfg.MaxNumber()}
	for _, g := range all {
		if fault := ps.add(g); fault != nil {
			err = errors.Join(err, g.fault(fault))
			continue
		}
		_, who, _ := g.plan(0)
		switch {
		case g.Random:
			who = "random, kept in " + path
		case g.assigned():
			who = "assigned"
		}
		label := "worker id  "
		if g.mark != "" {
			label = fmt.Sprintf("generator  %s: %s, ", g.Name, g.Format)
		}
		lines = append(lines, label+who)
	}
	return lines, err
}

// OpenLocal opens a generator for a short-lived program. The generator stays open until end is called.
// Its mark is in the file at path; if path is empty, nothing is saved.
func OpenLocal(ctx context.Context, g config.Generator, path string, log *slog.Logger) (
	ids formats.Source, end func() error, err error) {
	local := &Generator{Generator: g, chosen: true, path: path, log: log}
	if path == "" {
		plan, _, err := local.plan(0)
		if err != nil {
			return nil, nil, err
		}
		ids, err := plan.Open(ctx, "", flake.Options{})
		return ids, ids.Close, err
	}
	h, err := generators.Open[formats.Generator](generators.Config{Path: path, Log: log})
	if err != nil {
		return nil, nil, err
	}
	// Any time may pass between two runs.
	gs := Set{host: h, options: flake.Options{AllowableDowntime: math.MaxInt64, Logger: log}}
	if names := h.Marks().Names(); len(names) > 0 && names[len(names)-1] != "" {
		err = fmt.Errorf("-mark %s: a node keeps the marks of its generators in this file, such as %s: "+
			"use a different one", path, names[len(names)-1])
	} else {
		local.marks = h.Marks()
		if err = new(disjoint).add(local); err == nil {
			err = gs.open(ctx, local)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, gs.Stop())
	}
	return gs.List[0].Server.IDs, gs.Stop, nil
}
