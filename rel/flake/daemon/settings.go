package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/stores"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/credentials"
)

// warnOfCertificates warns about certificates that callers may refuse.
func (s settings) warnOfCertificates(log *slog.Logger) {
	if s.node != nil {
		_, host, _ := strings.Cut(s.config.Node.Name, "@")
		if err := s.node.Config().Certificates[0].Leaf.VerifyHostname(host); err != nil {
			log.Warn("nodes that verify this node's certificate will refuse it", "err", err)
		}
	}
	s.node.Warn()
	s.http.Warn()
}

// reloadable are the keys that a running node can change. All others need a restart.
var reloadable = []string{
	"node.cookie", "node.cookie_file", "node.previous_cookie", "node.previous_cookie_file",
	"node.max_connections", "node.max_connections_per_host", "node.drain_time",
	"http.token_file", "http.open", "http.pprof", "log.level",
}

// settings are a configuration and the contents of the files that it names.
type settings struct {
	config config.Config
	access idhttp.Access

	// Each is nil if there are no certificates; otherwise it reads its files again for each connection.
	node, http *credentials.Certs

	store       workers.Store        // nil if no number is assigned
	reloadStore func(config.Numbers) // makes store use new values
}

// filesCheck is how often secrets and certificates are compared with those in use, because a container
// without a shell offers no way to send SIGHUP. A change takes effect once two checks have found it.
const filesCheck = 5 * time.Second

func secrets(cfg config.Config) []string {
	return []string{cfg.Node.CookieFile, cfg.Node.PreviousCookieFile, cfg.HTTP.TokenFile}
}

// readSettings reads the files that a configuration names. It returns all errors, joined.
func readSettings(cfg config.Config, log *slog.Logger) (s settings, err error) {
	s.config = cfg
	var nodeErr, httpErr, accessErr, storeErr error
	s.node, nodeErr = credentials.NodeCerts(cfg.Node, log)
	s.http, httpErr = credentials.HTTPCerts(cfg.HTTP, log)
	s.access, accessErr = access(cfg.HTTP)
	if cfg.Assigned() {
		s.store, s.reloadStore, storeErr = cfg.Numbers.Open(false)
	}
	if err := errors.Join(nodeErr, httpErr, accessErr, storeErr); err != nil {
		return s, cli.UsageError(err)
	}
	return s, nil
}

// with returns a copy of s that takes from file the settings that a running node can change.
// changed lists the keys whose values change, and later lists the keys whose new values need a
// restart.
func (s settings) with(file config.Config) (next settings, changed, later []string, err error) {
	// The whole file must be valid, and so must its new values combined with the values that cannot change.
	if _, err := readSettings(file, slog.New(slog.DiscardHandler)); err != nil {
		return s, nil, nil, err
	}
	next = s
	merged := &next.config
	sameStore := file.Assigned() == s.config.Assigned() && file.Numbers.Store == s.config.Numbers.Store
	for _, key := range config.Changed(s.config, file) {
		if slices.Contains(reloadable, key) || sameStore && stores.KeyOf(key).Reloads {
			merged.Take(key, &file)
			changed = append(changed, key)
		} else {
			later = append(later, key)
		}
	}
	if err := merged.Check(); err != nil {
		unchanged := errors.New("with the current values of the keys that need a restart: " + strings.Join(later, ", "))
		return s, nil, nil, errors.Join(unchanged, err)
	}
	if next.access, err = access(merged.HTTP); err != nil { // of merged: file may lack http.listen
		return s, nil, nil, err
	}
	if err := unlocked(s, next); err != nil {
		return s, nil, nil, err
	}
	if next.access.Token != s.access.Token && !slices.Contains(changed, "http.token_file") {
		changed = append(changed, "http.token_file")
	}
	return next, changed, later, nil
}

// unlocked returns an error if next admits callers without a cookie or token that s requires.
// A file that is empty for a moment, or truncated, could cause that.
func unlocked(s, next settings) error {
	was, is := s.config.Node, next.config.Node
	closed := was.Cookie != config.PublishedCookie
	switch {
	case closed && is.Cookie == config.PublishedCookie:
		return errors.New("node.cookie: a reload cannot replace a private cookie with the published default: " +
			"set a cookie, or restart the node")
	case closed && is.PreviousCookie == config.PublishedCookie && was.PreviousCookie != config.PublishedCookie:
		return errors.New("node.previous_cookie: a reload cannot add the published cookie: " +
			"set another, or restart the node")
	case s.access.Token != "" && next.access.Token == "":
		return errors.New("http.token_file: a reload cannot remove the token: set it, or restart the node")
	}
	return nil
}

// access returns the access rules of HTTP, with the current token from its file. The rules are
// zero if the node has no HTTP: the token is then for commands that query another node.
func access(cfg config.HTTP) (a idhttp.Access, err error) {
	if cfg.Listen == "" {
		return a, nil
	}
	a.AnyHost, a.Pprof = cfg.Open, cfg.Pprof
	a.Token, err = credentials.Token(cfg.TokenFile)
	return a, err
}

func warnOf(cfg config.Config, log *slog.Logger) {
	if cfg.Node.EPMD == "off" && cfg.Node.FixedPort() == "" {
		log.Warn("Erlang nodes cannot find this one, because node.epmd is off: set node.listen to a port")
	}
}

// warnOfHost warns if the host in a node's name is no address of this machine, because callers dial that host. It
// tries to resolve the host for a while: in Kubernetes, a new pod's name takes some seconds to appear.
func warnOfHost(ctx context.Context, name string, log *slog.Logger) {
	_, hostname, _ := strings.Cut(name, "@")
	if host.IsLoopback(hostname) {
		return
	}
	const patience, pause = time.Minute, 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", hostname)
	for err != nil {
		select {
		case <-time.After(pause):
			addresses, err = net.DefaultResolver.LookupNetIP(ctx, "ip", hostname)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) { // otherwise the node is stopping
				log.Warn("the host in node.name cannot be resolved, so callers may not find this node",
					"node", name, "err", err)
			}
			return
		}
	}
	for i, a := range addresses {
		addresses[i] = a.Unmap().WithZone("")
	}
	own, err := net.InterfaceAddrs()
	isOwn := func(address netip.Addr) bool {
		return address.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
			prefix, err := netip.ParsePrefix(a.String())
			return err == nil && prefix.Addr() == address
		})
	}
	if err == nil && !slices.ContainsFunc(addresses, isOwn) {
		log.Warn("the host in node.name is no address of this machine: callers dial that host, so set node.name, "+
			"unless it forwards to this machine", "node", name, "addresses", addresses)
	}
}
