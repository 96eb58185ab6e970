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
	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node/certs"
)

// reloadable are the keys that a running node changes. All others need a restart.
var reloadable = []string{
	"node.cookie", "node.cookie_file", "node.previous_cookie", "node.previous_cookie_file",
	"node.max_connections", "node.max_connections_per_host", "node.drain_time",
	"http.token_file", "http.open", "http.pprof", "etcd.user", "etcd.password_file", "log.level",
}

// settings are what of a configuration can change while the node runs, with what its
// files hold.
type settings struct {
	config   config.Config
	access   idhttp.Access
	password string // of etcd's user
}

// sources are what reads files again for each connection. Each may be nil.
type sources struct {
	node, http *certs.Source
	etcd       *etcd.Store
}

// readSettings reads the files that a configuration names. It tells all faults.
func readSettings(cfg config.Config, log *slog.Logger) (s settings, from sources, err error) {
	s.config = cfg
	var nodeErr, httpErr, accessErr, etcdErr error
	from.node, nodeErr = openCerts(cfg.Node, log)
	from.http, httpErr = openHTTPCerts(cfg.HTTP, log)
	s.access, accessErr = access(cfg.HTTP)
	if cfg.FromEtcd() {
		from.etcd, s.password, etcdErr = openEtcd(cfg.Etcd)
	}
	if err := errors.Join(nodeErr, httpErr, accessErr, etcdErr); err != nil {
		return s, from, usageError{err}
	}
	return s, from, nil
}

// with returns the settings that the node goes on with: of those in the file, what can
// change. changed are the keys that do, and later those that need a restart.
func (s settings) with(file config.Config) (next settings, changed, later []string, err error) {
	// All of the file has to be right, and so does what can change beside what cannot.
	all, _, err := readSettings(file, slog.New(slog.DiscardHandler))
	if err != nil {
		return s, nil, nil, err
	}
	merged := s.config
	sameEtcd := file.FromEtcd() == s.config.FromEtcd() // else its user stays with it
	if !sameEtcd {
		all.password = s.password
	}
	for _, key := range config.Changed(s.config, file) {
		if slices.Contains(reloadable, key) && (sameEtcd || !strings.HasPrefix(key, "etcd.")) {
			merged.Take(key, &file)
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
	if err := unlocked(s, next); err != nil {
		return s, nil, nil, err
	}
	for key, same := range map[string]bool{"http.token_file": next.access.Token == s.access.Token, "etcd.password_file": next.password == s.password} {
		if !same && !slices.Contains(changed, key) {
			changed = append(changed, key)
		}
	}
	return next, changed, later, nil
}

// unlocked returns an error if next lets in callers without the cookie or the token that s wants.
// A file that is empty for a moment, or was cut off, says so too.
func unlocked(s, next settings) error {
	was, is := s.config.Node, next.config.Node
	closed := was.Cookie != config.PublishedCookie
	switch {
	case closed && is.Cookie == config.PublishedCookie:
		return errors.New("node.cookie: a reload does not go from a cookie to the published one, which is the default: set one, or restart the node")
	case closed && is.PreviousCookie == config.PublishedCookie && was.PreviousCookie != config.PublishedCookie:
		return errors.New("node.previous_cookie: a reload does not add the published cookie: set another, or restart the node")
	case s.access.Token != "" && next.access.Token == "":
		return errors.New("http.token_file: a reload does not go from a token to none: set it, or restart the node")
	}
	return nil
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
	s.node.SetConnections(int(node.MaxConnections), int(node.MaxConnectionsPerHost))
	s.level.Set(next.config.Log.Level)
	s.http.renew(next.access)
	if s.secured != nil {
		s.secured() // reads the certificates again, and says so
	}
	if s.etcd != nil {
		s.etcd.SetUser(next.config.Etcd.User, next.password)
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
