// Package server runs the node: it opens the generators, both doors, the log and the prompt,
// reloads the configuration, and stops everything in order.
//
// Start at [Run].
package server

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

// Server holds everything that runs.
type Server struct {
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
func prepare(ctx context.Context, cfg *config.Config, lines *output.Log) (s *Server, err error) {
	s = &Server{log: lines.Logger, level: lines.Level, secrets: credentials.Watched(secrets(*cfg)...)}
	s.settings, err = readSettings(*cfg, s.log) // before the default timestamp path is filled in
	if err != nil {
		return nil, err
	}
	// Each generator keeps one file open: its claim.
	if err := cmp.Or(reserve.Enough(len(cfg.Generators)), socket.EnoughThreads()); err != nil {
		return nil, err
	}
	s.settings.warnOfCertificates(s.log)
	if cfg.Flake.TimestampPath == "" {
		if cfg.Flake.TimestampPath, err = cli.TimestampPath(); err != nil {
			return nil, err
		}
	}
	// EPMD first: generators may wait for the clock, and other nodes on the machine need EPMD now.
	s.keeper = &epmd.Keeper{Mode: epmd.Mode(cfg.Node.EPMD), Log: s.log}
	if err := s.keeper.Prepare(ctx); err != nil {
		return nil, err
	}
	if s.Generators, err = setup.Open(ctx, *cfg, s.settings.store, s.log); err != nil {
		s.keeper.Close()
		return nil, err
	}
	if s.http, err = openDoor(cfg.HTTP, s.log); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Try starts everything up to the point where the node would listen, and leaves nothing running.
// It returns the first generator's worker, or the error that kept the node from starting.
func Try(ctx context.Context, cfg config.Config, lines *output.Log) (worker uint64, err error) {
	s, err := prepare(ctx, &cfg, lines)
	if err != nil {
		return 0, err
	}
	return s.Generators.List[0].Server.IDs.Worker(), s.Stop()
}

// Start starts the node.
func Start(ctx context.Context, cfg config.Config, stdout io.Writer, lines *output.Log) (*Server, error) {
	s, err := prepare(ctx, &cfg, lines)
	if err != nil {
		return nil, err
	}
	first := s.Generators.List[0].Server
	// The node does not end with ctx, because the caller stops it in order when ctx ends.
	n, err := node.Start(context.WithoutCancel(ctx), node.Options{
		Name:        cfg.Node.Name,
		Cookie:      cfg.Node.Cookie,
		Previous:    cfg.Node.PreviousCookie,
		Listen:      cfg.Node.Listen,
		Keeper:      s.keeper,
		NetTicktime: cfg.Node.NetTicktime,
		Memory:      memoryOf(cfg.Node),

		Connections:        int(cfg.Node.MaxConnections),
		ConnectionsPerHost: int(cfg.Node.MaxConnectionsPerHost),

		TLS: s.settings.node.Source(),
		Supervisors: []node.Supervisor{{Name: "flake_sup", Module: "flake_sup",
			Children: append(s.Generators.Children(s.log), node.Child{
				Name: "persistent_timer", Module: "persistent_timer", Handler: iderl.Timer{IDs: first.IDs}})}},
		Functions: iderl.Functions(first, originalConfig(cfg.Flake), stdout),
		Log:       s.log,
	})
	if err != nil {
		if failed := new(net.OpError); cfg.Node.Listen != "" && errors.As(err, &failed) && failed.Op == "listen" {
			err = fmt.Errorf("node.listen: %w", err)
		}
		return nil, errors.Join(err, s.Stop())
	}
	s.Node = n
	s.http.serve(idhttp.Options{Generators: s.Generators.Doors(n), Node: surroundings(n, s.settings.node.Source()),
		TLS: s.settings.http.Source(), Access: s.settings.access,
		Connections: reserve.Quarter(httpWithin(memoryOf(cfg.Node))), Recent: &lines.Recent, Log: s.log})
	return s, nil
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
func (s *Server) announce(w io.Writer) {
	first, address, epmd := s.Generators.List[0].Who, s.Node.Addr().String(), s.Node.EPMD().String()
	cookie, public := s.settings.config.Node.CookieFrom, s.settings.config.Node.Cookie == config.PublishedCookie
	if public {
		cookie = "flake, which is public: set node.cookie unless you trust all users of this machine"
	}
	others := []string{}
	for _, g := range s.Generators.List[1:] {
		others = append(others, fmt.Sprintf("%s: %s, %s", g.Name, g.Server.IDs.Format().Name, g.Who))
	}
	url, metrics := s.http.addresses()
	if s.settings.config.Log.Format == config.LogJSON {
		s.log.Info("hands out ids", "node", s.Node.Name(), "worker", first, "generators", others, "address", address,
			"cookie", cookie, "epmd", epmd, "url", url, "metrics", metrics)
		return
	}
	fmt.Fprintf(w, "%s hands out ids\n  worker id  %s\n", s.Node.Name(), first)
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
func (s *Server) Stop() error {
	s.http.stop()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if s.Node != nil {
			s.Node.Stop()
		} else {
			s.keeper.Close()
		}
	}()
	select {
	case <-stopped:
	case <-time.After(nodeEnd):
		s.log.Error("the node does not stop; the last time is saved anyway", "wait", nodeEnd)
	}
	return s.Generators.Stop()
}

var errChanging = errors.New("a secret's file is still changing")

// reload applies those parts of the configuration that a running node can change. If the
// configuration is invalid or, unless atOnce is set, a secret changes during the reload, it
// changes nothing.
func (s *Server) reload(load func() (config.Config, error), atOnce bool) error {
	var next settings
	var changed, later []string
	file, err := load()
	if err == nil {
		next, changed, later, err = s.settings.with(file)
	}
	if !s.secrets.Kept(secrets(s.settings.config)...) && !atOnce {
		return errChanging
	}
	if err != nil {
		return err
	}
	s.settings = next
	node := next.config.Node
	s.Node.SetCookies(node.Cookie, node.PreviousCookie)
	s.Node.SetConnections(int(node.MaxConnections), int(node.MaxConnectionsPerHost))
	s.level.Set(next.config.Log.Level)
	if s.http != nil {
		s.http.SetAccess(next.access)
	}
	if atOnce { // otherwise they are renewed once they have settled
		s.renewCertificates(true)
	}
	if next.store != nil {
		next.reloadStore(next.config.Numbers)
	}
	s.log.Info("the configuration was reloaded", "keys", cmp.Or(strings.Join(changed, ", "), "nothing"))
	if len(later) > 0 {
		s.log.Warn("changes to these keys need a restart", "keys", strings.Join(later, ", "))
	}
	return nil
}

func (s *Server) renewCertificates(atOnce bool) {
	for _, c := range []*credentials.Certs{s.settings.node, s.settings.http} {
		if c != nil {
			c.Renew(atOnce)
		}
	}
}

// reloads reloads the configuration on each SIGHUP, and whenever a secret's file has changed, until
// ctx ends.
func (s *Server) reloads(ctx context.Context, hangups <-chan os.Signal, load func() (config.Config, error),
	note *systemd.Notifier) {
	for check := time.Tick(filesCheck); ; {
		atOnce := false
		select {
		case <-hangups:
			atOnce = true
		case <-check:
			s.renewCertificates(false)
		case <-ctx.Done():
			return
		}
		if !s.secrets.Changed(atOnce, secrets(s.settings.config)...) && !atOnce {
			continue
		}
		note.Reloading()
		text := "the configuration was reloaded"
		if err := s.reload(load, atOnce); err == errChanging {
			text = err.Error()
		} else if err != nil {
			s.log.Error("the configuration could not be reloaded; the old one stays in effect", "err", err)
			text = "the configuration could not be reloaded: see the log"
		}
		note.Ready(text)
	}
}

// drain makes /readyz report that the node will stop. If SIGTERM stops the node, drain then waits for
// node.drain_time, in which ids can still be made, so that a load balancer can move callers to other nodes.
func (s *Server) drain(ctx context.Context, note *systemd.Notifier) {
	wait := s.settings.config.Node.DrainTime
	if cause, _ := errors.AsType[cli.Signal](context.Cause(ctx)); cause.Signal != syscall.SIGTERM {
		wait = 0
	}
	note.Stopping(wait)
	if s.http != nil {
		s.http.Drain()
	}
	if wait > 0 {
		s.log.Info("draining before the node stops: /readyz reports it, and ids can still be made",
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
	s, err := Start(ctx, cfg, stdout, lines)
	started()
	if err != nil {
		return err
	}
	go boundMemory(ctx, s.Node.Connections, memoryOf(cfg.Node), cfg.Node.TLS.On)
	go releaseMemory(ctx)
	go warnOfHost(ctx, cfg.Node.Name, log)
	s.announce(stdout)
	note.Ready("hands out ids")
	running, end := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() { s.reloads(running, hup, load, note) })
	both.Go(func() { watch(running, s.Generators.List, note, log) })
	if p != nil {
		p.functions = s.Node.Functions()
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
	s.drain(ctx, note)
	if err := s.Stop(); err != nil {
		return fmt.Errorf("the last time was not saved, so the next startup may have to wait: %w", err)
	}
	return nil
}
