// Package daemon runs the node: it opens the generators, both doors, the log and the prompt,
// reloads the configuration, and stops everything in order.
//
// Start at [Run].
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/iderl"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/console"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/reserve"
	"github.com/flake-go/flake/node/socket"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/credentials"
	"github.com/flake-go/flake/rel/flake/output"
	"github.com/flake-go/flake/rel/flake/setup"
	"github.com/flake-go/flake/rel/flake/systemd"
)

// Daemon holds everything that runs.
type Daemon struct {
	Node       *node.Node   // nil until it starts
	keeper     *epmd.Keeper // of Node
	Generators setup.Set
	http       *httpDoor         // or nil
	settings   settings          // current
	secrets    credentials.Watch // used only by reloads
	log        *slog.Logger
	level      *slog.LevelVar // of log's lines
}

// prepare completes cfg, and opens what a node needs before it starts. Stop closes what prepare opened.
func prepare(ctx context.Context, cfg *config.Config, lines *output.Log) (d *Daemon, err error) {
	d = &Daemon{log: lines.Logger, level: lines.Level, secrets: credentials.Watched(secrets(*cfg)...)}
	d.settings, err = readSettings(*cfg, d.log) // before the default timestamp path is filled in
	if err != nil {
		return nil, err
	}
	// Each generator keeps one file open: its claim.
	if err := cmp.Or(reserve.Enough(len(cfg.Generators)), socket.EnoughThreads()); err != nil {
		return nil, err
	}
	d.settings.warnOfCertificates(d.log)
	if cfg.Flake.TimestampPath == "" {
		if cfg.Flake.TimestampPath, err = cli.TimestampPath(); err != nil {
			return nil, err
		}
	}
	// EPMD first: generators may wait for the clock, and other nodes on the machine need EPMD now.
	d.keeper = &epmd.Keeper{Mode: epmd.Mode(cfg.Node.EPMD), Log: d.log}
	if err := d.keeper.Prepare(ctx); err != nil {
		return nil, err
	}
	if d.Generators, err = setup.Open(ctx, *cfg, d.settings.store, d.log); err != nil {
		d.keeper.Close()
		return nil, err
	}
	if d.http, err = openDoor(cfg.HTTP, d.log); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

// Try starts everything up to the point where the node would listen, and leaves nothing running.
// It returns the first generator's worker, or the error that kept the node from starting.
func Try(ctx context.Context, cfg config.Config, lines *output.Log) (worker uint64, err error) {
	d, err := prepare(ctx, &cfg, lines)
	if err != nil {
		return 0, err
	}
	return d.Generators.List[0].Server.IDs.Worker(), d.Stop()
}

// Start starts the node.
func Start(ctx context.Context, cfg config.Config, stdout io.Writer, lines *output.Log) (*Daemon, error) {
	d, err := prepare(ctx, &cfg, lines)
	if err != nil {
		return nil, err
	}
	first := d.Generators.List[0].Server
	// The node does not end with ctx, because the caller stops it in order when ctx ends.
	n, err := node.Start(context.WithoutCancel(ctx), node.Options{
		Name:        cfg.Node.Name,
		Cookie:      cfg.Node.Cookie,
		Previous:    cfg.Node.PreviousCookie,
		Listen:      cfg.Node.Listen,
		Keeper:      d.keeper,
		NetTicktime: cfg.Node.NetTicktime,
		Memory:      memoryOf(cfg.Node),

		Connections:        int(cfg.Node.MaxConnections),
		ConnectionsPerHost: int(cfg.Node.MaxConnectionsPerHost),

		TLS: d.settings.node.Source(),
		Supervisors: []node.Supervisor{{Name: "flake_sup", Module: "flake_sup",
			Children: append(d.Generators.Children(d.log), node.Child{
				Name: "persistent_timer", Module: "persistent_timer", Handler: iderl.Timer{IDs: first.IDs}})}},
		Functions: iderl.Functions(first, originalConfig(cfg.Flake), stdout),
		Log:       d.log,
	})
	if err != nil {
		if failed := new(net.OpError); cfg.Node.Listen != "" && errors.As(err, &failed) && failed.Op == "listen" {
			err = fmt.Errorf("node.listen: %w", err)
		}
		return nil, errors.Join(err, d.Stop())
	}
	d.Node = n
	d.http.serve(idhttp.Options{Generators: d.Generators.Doors(n), Node: surroundings(n, d.settings.node.Source()),
		TLS: d.settings.http.Source(), Access: d.settings.access,
		Connections: reserve.Quarter(httpWithin(memoryOf(cfg.Node))), Recent: &lines.Recent, Log: d.log})
	return d, nil
}

// originalConfig returns the settings by their names in the original's sys.config.
func originalConfig(cfg config.Flake) map[etf.Atom]etf.Term {
	settings := map[etf.Atom]etf.Term{
		"timestamp_path":     etf.String(cfg.TimestampPath),
		"allowable_downtime": cfg.AllowableDowntime.Milliseconds(),
	}
	if cfg.Interface != "" {
		settings["interface"] = etf.String(cfg.Interface)
	}
	return settings
}

// announce reports what has started: in lines on w or, if the log is in JSON, in one log line.
func (d *Daemon) announce(w io.Writer) {
	first, address, epmd := d.Generators.List[0].Who, d.Node.Addr().String(), d.Node.EPMD().String()
	cookie, public := d.settings.config.Node.CookieFrom, d.settings.config.Node.Cookie == config.PublishedCookie
	if public {
		cookie = "flake, which is public: set node.cookie unless you trust all users of this machine"
	}
	others := []string{}
	for _, g := range d.Generators.List[1:] {
		others = append(others, fmt.Sprintf("%s: %s, %s", g.Name, g.Server.IDs.Format().Name, g.Who))
	}
	url, metrics := d.http.addresses()
	if d.settings.config.Log.Format == config.LogJSON {
		d.log.Info("hands out ids", "node", d.Node.Name(), "worker", first, "generators", others, "address", address,
			"cookie", cookie, "epmd", epmd, "url", url, "metrics", metrics)
		return
	}
	fmt.Fprintf(w, "%s hands out ids\n  worker id  %s\n", d.Node.Name(), first)
	for _, other := range others {
		fmt.Fprintf(w, "  generator  %s\n", other)
	}
	if cookie != "" && !public {
		cookie = "from " + cookie
	}
	for _, line := range [][2]string{
		{"address", address}, {"cookie", cookie}, {"EPMD", epmd}, {"HTTP", url}, {"metrics", metrics},
	} {
		if line[1] != "" {
			fmt.Fprintf(w, "  %-9s  %s\n", line[0], line[1])
		}
	}
}

// nodeEnd limits how long the node may take to stop, so that nothing in it can prevent the last save.
const nodeEnd = 3 * time.Second

// Stop stops HTTP, then the node, then the generators, which save their last times.
func (d *Daemon) Stop() error {
	d.http.stop()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if d.Node != nil {
			d.Node.Stop()
		} else {
			d.keeper.Close()
		}
	}()
	select {
	case <-stopped:
	case <-time.After(nodeEnd):
		d.log.Error("the node does not stop; the last time is saved anyway", "wait", nodeEnd)
	}
	return d.Generators.Stop()
}

var errChanging = errors.New("a secret's file is still changing")

// reload applies those parts of the configuration that a running node can change. If the
// configuration is invalid or, unless atOnce is set, a secret changes during the reload, it
// changes nothing.
func (d *Daemon) reload(load func() (config.Config, error), atOnce bool) error {
	var next settings
	var changed, later []string
	file, err := load()
	if err == nil {
		next, changed, later, err = d.settings.with(file)
	}
	if !d.secrets.Kept(secrets(d.settings.config)...) && !atOnce {
		return errChanging
	}
	if err != nil {
		return err
	}
	d.settings = next
	node := next.config.Node
	d.Node.SetCookies(node.Cookie, node.PreviousCookie)
	d.Node.SetConnections(int(node.MaxConnections), int(node.MaxConnectionsPerHost))
	d.level.Set(next.config.Log.Level)
	if d.http != nil {
		d.http.SetAccess(next.access)
	}
	if atOnce { // otherwise they are renewed once they have settled
		d.renewCertificates(true)
	}
	if next.store != nil {
		next.reloadStore(next.config.Numbers)
	}
	d.log.Info("the configuration was reloaded", "keys", cmp.Or(strings.Join(changed, ", "), "nothing"))
	if len(later) > 0 {
		d.log.Warn("changes to these keys need a restart", "keys", strings.Join(later, ", "))
	}
	return nil
}

func (d *Daemon) renewCertificates(atOnce bool) {
	for _, c := range []*credentials.Certs{d.settings.node, d.settings.http} {
		if c != nil {
			c.Renew(atOnce)
		}
	}
}

// reloads reloads the configuration on each SIGHUP, and whenever a secret's file has changed, until
// ctx ends.
func (d *Daemon) reloads(ctx context.Context, hangups <-chan os.Signal, load func() (config.Config, error),
	note *systemd.Notifier) {
	for check := time.Tick(filesCheck); ; {
		atOnce := false
		select {
		case <-hangups:
			atOnce = true
		case <-check:
			d.renewCertificates(false)
		case <-ctx.Done():
			return
		}
		if !d.secrets.Changed(atOnce, secrets(d.settings.config)...) && !atOnce {
			continue
		}
		note.Reloading()
		text := "the configuration was reloaded"
		if err := d.reload(load, atOnce); err == errChanging {
			text = err.Error()
		} else if err != nil {
			d.log.Error("the configuration could not be reloaded; the old one stays in effect", "err", err)
			text = "the configuration could not be reloaded: see the log"
		}
		note.Ready(text)
	}
}

// drain makes /readyz report that the node will stop. If SIGTERM stops the node, drain then waits for
// node.drain_time, in which ids can still be made, so that a load balancer can move callers to other nodes.
func (d *Daemon) drain(ctx context.Context, note *systemd.Notifier) {
	wait := d.settings.config.Node.DrainTime
	if cause, _ := errors.AsType[cli.Signal](context.Cause(ctx)); cause.Signal != syscall.SIGTERM {
		wait = 0
	}
	note.Stopping(wait)
	if d.http != nil {
		d.http.Drain()
	}
	if wait > 0 {
		d.log.Info("draining before the node stops: /readyz reports it, and ids can still be made",
			"wait", wait)
		time.Sleep(wait)
	}
}

// Run runs the node until ctx ends or the user leaves the prompt. The prompt needs a terminal
// as standard input.
func Run(ctx context.Context, load func() (config.Config, error), noinput bool, stdout, stderr io.Writer) error {
	var hup <-chan os.Signal
	if !output.IsTerminal(os.Stdin) && !output.IsTerminal(stdout) && !output.IsTerminal(stderr) {
		hup = cli.Hangups() // before the configuration is read, so that a SIGHUP after a later change is not lost
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	// If the reader of the output is gone, lines are lost, but the node continues.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var p *prompt
	if !noinput && output.IsTerminal(os.Stdin) && output.IsTerminal(stdout) {
		p = &prompt{}
		p.Console = console.New(console.Options{
			Node: cfg.Node.Name, In: os.Stdin, Out: stdout, Functions: p.call, Help: help,
		})
		stdout = p
		if output.IsTerminal(stderr) {
			stderr = p
		}
	} else {
		out := output.New(stdout)
		defer out.Close()
		stdout = out
	}
	lines := output.OpenLog(cfg.Log, stderr)
	defer lines.Close()
	log := lines.Logger
	warnOf(cfg, log)
	slog.SetDefault(log) // Ergo writes to package log

	note := systemd.Open(log)
	defer note.Close()
	started := note.Starting()
	d, err := Start(ctx, cfg, stdout, lines)
	started()
	if err != nil {
		return err
	}
	go boundMemory(ctx, d.Node.Connections, memoryOf(cfg.Node), cfg.Node.TLS.On)
	go releaseMemory(ctx)
	go warnOfHost(ctx, cfg.Node.Name, log)
	d.announce(stdout)
	note.Ready("hands out ids")
	running, end := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() { d.reloads(running, hup, load, note) })
	both.Go(func() { watch(running, d.Generators.List, note, log) })
	if p != nil {
		p.functions = d.Node.Functions()
		if err = p.Run(ctx); err != nil && ctx.Err() == nil {
			log.Error("the prompt failed; the node continues", "err", err)
		}
	}
	if p == nil || err != nil {
		<-ctx.Done()
	}
	end()
	both.Wait()
	log.Info("stopping")
	d.drain(ctx, note)
	if err := d.Stop(); err != nil {
		return fmt.Errorf("the last time was not saved, so the next startup may have to wait: %w", err)
	}
	return nil
}
