package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
)

// reloadable are the keys that a running node changes: each takes its value from the new
// configuration. All others need a restart.
var reloadable = map[string]func(to, from *config.Config){
	"node.cookie": func(to, from *config.Config) {
		to.Node.Cookie, to.Node.CookieFrom = from.Node.Cookie, from.Node.CookieFrom
	},
	"node.previous_cookie":          func(to, from *config.Config) { to.Node.PreviousCookie = from.Node.PreviousCookie },
	"node.cookie_file":              func(to, from *config.Config) { to.Node.CookieFile = from.Node.CookieFile },
	"node.previous_cookie_file":     func(to, from *config.Config) { to.Node.PreviousCookieFile = from.Node.PreviousCookieFile },
	"node.max_connections":          func(to, from *config.Config) { to.Node.MaxConnections = from.Node.MaxConnections },
	"node.max_connections_per_host": func(to, from *config.Config) { to.Node.MaxConnectionsPerHost = from.Node.MaxConnectionsPerHost },
	"node.drain_time":               func(to, from *config.Config) { to.Node.DrainTime = from.Node.DrainTime },
	"http.token_file":               func(to, from *config.Config) { to.HTTP.TokenFile = from.HTTP.TokenFile },
	"http.open":                     func(to, from *config.Config) { to.HTTP.Open = from.HTTP.Open },
	"http.pprof":                    func(to, from *config.Config) { to.HTTP.Pprof = from.HTTP.Pprof },
	"etcd.user":                     func(to, from *config.Config) { to.Etcd.User = from.Etcd.User },
	"etcd.password_file":            func(to, from *config.Config) { to.Etcd.PasswordFile = from.Etcd.PasswordFile },
	"log.level":                     func(to, from *config.Config) { to.Log.Level = from.Log.Level },
}

// settings are what of a configuration can change while the node runs, with what its
// files hold.
type settings struct {
	config   config.Config
	access   idhttp.Access
	password string // of etcd's user
}

// readSettings reads the files that a configuration names, and checks those that are
// read again for each connection. It tells all faults.
func readSettings(cfg config.Config) (s settings, err error) {
	s.config = cfg
	quiet := slog.New(slog.DiscardHandler)
	_, nodeErr := openCerts(cfg.Node, quiet)
	_, httpErr := openHTTPCerts(cfg.HTTP, quiet)
	var accessErr, etcdErr error
	s.access, accessErr = access(cfg.HTTP)
	if cfg.FromEtcd() {
		if s.password, etcdErr = passwordOf(cfg.Etcd); etcdErr == nil {
			_, etcdErr = openEtcd(cfg.Etcd)
		}
	}
	if err := errors.Join(nodeErr, httpErr, accessErr, etcdErr); err != nil {
		return s, usageError{err}
	}
	return s, nil
}

// with returns the settings that the node goes on with: of those in the file, what can
// change. changed are the keys that do, and later those that need a restart.
func (s settings) with(file config.Config) (next settings, changed, later []string, err error) {
	// All of the file has to be right, and so does what can change beside what cannot.
	all, err := readSettings(file)
	if err != nil {
		return s, nil, nil, err
	}
	merged := s.config
	sameEtcd := file.FromEtcd() == s.config.FromEtcd() // else its user stays with it
	if !sameEtcd {
		all.password = s.password
	}
	for _, key := range config.Changed(s.config, file) {
		if take := reloadable[key]; take != nil && (sameEtcd || !strings.HasPrefix(key, "etcd.")) {
			take(&merged, &file)
			changed = append(changed, key)
		} else {
			later = append(later, key)
		}
	}
	if err := merged.Check(); err != nil {
		return s, nil, nil, errors.Join(errors.New("with the keys as they are that need a restart: "+strings.Join(later, ", ")), err)
	}
	next = settings{config: merged, password: all.password}
	if next.access, err = access(merged.HTTP); err != nil { // the file may have no listener
		return s, nil, nil, err
	}
	for key, same := range map[string]bool{"http.token_file": next.access.Token == s.access.Token, "etcd.password_file": next.password == s.password} {
		if !same && !slices.Contains(changed, key) {
			changed = append(changed, key)
		}
	}
	return next, changed, later, nil
}

// reload has the node go on with what it can of a configuration that was just read, or
// with what it has if that is wrong.
func (s *server) reload(load func() (config.Config, error)) error {
	file, err := load()
	if err != nil {
		return err
	}
	next, changed, later, err := s.settings.with(file)
	if err != nil {
		return err
	}
	s.settings = next
	node := next.config.Node
	s.node.SetCookies(node.Cookie, node.PreviousCookie)
	s.fleet.setCookies(node.Cookie, node.PreviousCookie)
	s.node.SetConnections(int(node.MaxConnections), int(node.MaxConnectionsPerHost))
	s.level.Set(next.config.Log.Level)
	s.http.renew(next.access)
	if s.secured != nil {
		s.secured() // reads the certificates again, and says so
	}
	if n := s.generators.numbers; n != nil {
		n.store.SetUser(next.config.Etcd.User, next.password)
	}
	s.log.Info("the configuration was reloaded", "keys", listed(changed))
	if len(later) > 0 {
		s.log.Warn("these keys have changed, and need a restart", "keys", listed(later))
	}
	return nil
}

func listed(keys []string) string {
	if len(keys) == 0 {
		return "nothing"
	}
	return strings.Join(keys, ", ")
}

// reloads reloads the configuration on each hangup, until ctx ends.
func (s *server) reloads(ctx context.Context, hangups <-chan struct{}, load func() (config.Config, error), note *notifier) {
	for {
		select {
		case <-hangups:
		case <-ctx.Done():
			return
		}
		note.reloading()
		text := "the configuration was reloaded"
		if err := s.reload(load); err != nil {
			s.log.Error("the configuration was not reloaded, and nothing has changed", "err", err)
			text = "the configuration was not reloaded: see the log"
		}
		note.ready(text)
	}
}

// operate does what a node does beside its work, until ctx ends or the function that it
// returns is called: it reloads the configuration and feeds the watchdog.
func (s *server) operate(ctx context.Context, hangups <-chan struct{}, load func() (config.Config, error), note *notifier) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() { s.reloads(ctx, hangups, load, note) })
	both.Go(func() { s.watch(ctx, note) })
	return func() { cancel(); both.Wait() }
}

// drain has /readyz say for a time that the node is about to end, if it was told so by
// SIGTERM: ids go on, until who asks /readyz has sent all callers elsewhere.
func (s *server) drain(ctx context.Context, note *notifier) {
	var by signalled
	wait := s.settings.config.Node.DrainTime
	if !errors.As(context.Cause(ctx), &by) || by.Signal != syscall.SIGTERM {
		wait = 0
	}
	note.stopping(wait)
	s.http.drain()
	if wait > 0 {
		s.log.Info("the node stops once it has been drained: /readyz says so, and ids go on", "wait", wait)
		time.Sleep(wait)
	}
}
