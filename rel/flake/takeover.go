package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/original"
)

const takeoverMore = `It reads what the original has, writes a configuration from that, prepares all that
a start needs, and only then suspends the original's server, takes an id above its
last, halts the original, and hands out ids under its name. Its callers see the
connection end once, as in a restart.

Until the original is halted, whatever fails leaves it as it was: its server goes on,
and answers the calls that came meanwhile.

With -config the node has that configuration, as flake import writes it, and none
is written. It must have the worker id of the original.`

// takeoverFlags are the flags of takeover.
type takeoverFlags struct {
	*flags
	from, sysConfig, vmArgs, out, timestamp *string
}

// takeover becomes a running node of the original.
func takeover(f *flags) action {
	t := takeoverFlags{
		flags:     f,
		from:      f.String("from", "", "the running `node` of the original, name@host"),
		sysConfig: f.String("sys-config", "", "tell what of its sys.config, `FILE`, is not taken"),
		vmArgs:    f.String("vm-args", "", "take the cookie, and how it listens, from its vm.args, `FILE`"),
		out:       f.String("out", "sys.toml", "write the configuration to `FILE`, which must not be there yet"),
		timestamp: f.String("timestamp", "", "keep the mark in `FILE`, flake.timestamp_path; without it in the default place"),
	}
	f.file = f.String("config", "", "have the configuration of `FILE`, and write none")
	f.cookie = f.String("setcookie", "", "the `cookie` of the original; others can see it in ps, so rather set FLAKE_COOKIE")
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		if *t.from == "" {
			return usageError{errors.New("take over from whom? -from name@host wanted")}
		}
		if err := t.together(); err != nil {
			return usageError{err}
		}
		h, err := t.meet(ctx)
		if err != nil {
			return err
		}
		defer h.close()
		written, err := t.configure(h, stdout)
		if err != nil {
			return err
		}
		err = serveNode(ctx, t.load, true, stdout, stderr, h)
		if err != nil && written && !h.halted {
			if rmErr := os.Remove(*t.out); rmErr != nil {
				return errors.Join(err, rmErr)
			}
			fmt.Fprintf(stdout, "%s: removed, as nothing was taken over\n", *t.out)
		}
		return err
	}
}

// together refuses flags that are about the configuration to write where none is.
func (t *takeoverFlags) together() (err error) {
	t.Visit(func(set *flag.Flag) {
		switch set.Name {
		case "out", "sys-config", "timestamp", "vm-args":
			if *t.file != "" && err == nil {
				err = fmt.Errorf("-%s does not go with -config, whose file has all that the node is to have", set.Name)
			}
		}
	})
	return err
}

// meet connects to the original and reads what it is.
func (t *takeoverFlags) meet(ctx context.Context) (*handover, error) {
	var s original.Settings
	if err := readFiles(*t.sysConfig, *t.vmArgs, &s); err != nil {
		return nil, usageError{err}
	}
	cfg, err := t.provisional(s)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, errNoAnswer)
	defer cancel()
	h := &handover{node: *t.from, settings: s}
	if h.conn, err = h.dial(ctx, cfg.Node); err != nil {
		return nil, err
	}
	if err := h.read(ctx); err != nil {
		h.close()
		return nil, fmt.Errorf("node %s: %w", h.node, err)
	}
	h.settings.Name, h.settings.TimestampPath = h.node, cfg.Flake.TimestampPath
	if h.settings.TimestampPath == "" { // written, as a service may have another default
		if h.settings.TimestampPath, err = timestampPath(); err != nil {
			h.close()
			return nil, err
		}
	}
	if filepath.Base(cfg.Node.CookieFrom) != config.HomeCookieFile { // where the next start finds it, too
		h.settings.Cookie = cfg.Node.Cookie
	}
	return h, nil
}

// provisional returns the configuration that is known before the original has been
// asked: what to connect with.
func (t *takeoverFlags) provisional(s original.Settings) (config.Config, error) {
	if *t.file == "" {
		t.before = []config.Flag{{Name: "-from", Key: "node.name", Value: *t.from}}
		if *t.timestamp != "" {
			path, err := filepath.Abs(*t.timestamp)
			if err != nil {
				return config.Config{}, err
			}
			t.before = append(t.before, config.Flag{Name: "-timestamp", Key: "flake.timestamp_path", Value: path})
		}
		if s.Cookie != "" {
			t.before = append(t.before, config.Flag{Name: "-vm-args", Key: "node.cookie", Value: s.Cookie})
		}
		defer func() { t.before = nil }()
	}
	cfg, err := t.load()
	if err != nil {
		return cfg, err
	}
	if cfg.Node.Name != *t.from {
		return cfg, usageError{fmt.Errorf("node.name is %s, and -from %s; the node must have the name of the original", cfg.Node.Name, *t.from)}
	}
	if *t.file == "" && s.TLS.On {
		cfg.Node.TLS = config.TLS{On: true, Cert: s.TLS.Cert, Key: s.TLS.Key, CA: s.TLS.CA, Verify: config.VerifyPeer}
		if s.TLS.VerifyNone {
			cfg.Node.TLS.Verify = config.VerifyNone
		}
	}
	return cfg, nil
}

// dial connects to the original, which must be known to the EPMD that this node is to
// register with: so it is on this machine, and its name free once it has ended.
func (h *handover) dial(ctx context.Context, cfg config.Node) (*client.Conn, error) {
	dialer, err := dialerOf(cfg)
	if err != nil {
		return nil, err
	}
	if dialer.EPMD == "" {
		port, err := epmd.DefaultPort()
		if err != nil {
			return nil, err
		}
		dialer.EPMD = fmt.Sprintf("127.0.0.1:%d", port)
	}
	found, err := epmd.Lookup(ctx, dialer.EPMD, h.name())
	if err != nil {
		return nil, fmt.Errorf("%w; run this on the machine of the original, while that runs", err)
	}
	_, host, _ := strings.Cut(h.node, "@")
	ip, err := localAddress(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer.Addr = net.JoinHostPort(ip, fmt.Sprint(found.Port))
	h.epmd, h.addr = dialer.EPMD, dialer.Addr
	return dialer.Dial(ctx, h.node)
}

// localAddress returns an address of a host, which must be this machine: the port that EPMD
// tells is of a node here, and another machine may have a node of the name at that port, too.
func localAddress(ctx context.Context, host string) (string, error) {
	all, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", err
	}
	for _, ip := range all {
		if l, err := net.ListenPacket("udp", net.JoinHostPort(ip, "0")); err == nil {
			l.Close()
			return ip, nil
		}
	}
	return "", fmt.Errorf("%s is another machine; run this on the machine of the original, while that runs", host)
}

// configure writes the configuration, unless there is one, and says what it is made of.
func (t *takeoverFlags) configure(h *handover, stdout io.Writer) (written bool, err error) {
	if *t.file != "" {
		return false, nil
	}
	text, err := h.settings.TOML()
	if err != nil {
		return false, err
	}
	err = writeNew(*t.out, text) // the cookie is in it
	if errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("-out %s: it is there already; name another file, or take this one with -config", *t.out)
	}
	if err != nil {
		return false, fmt.Errorf("-out: %w", err)
	}
	t.file = t.out
	if _, err := t.load(); err != nil {
		return false, errors.Join(fmt.Errorf("what the original has is no configuration of this node: %w", err), os.Remove(*t.out))
	}
	tellSettings(stdout, h.settings)
	fmt.Fprintf(stdout, "%s: written\n", *t.out)
	return true, nil
}

// A handover is the way from a running original to this node.
type handover struct {
	node, addr, epmd string
	conn             *client.Conn
	settings         original.Settings
	worker           flake.Worker // that it has
	last             uint64       // the time of its last id, ms

	guard     etf.Pid   // the process that suspends it
	suspended time.Time // since when it hands out no ids
	halted    bool      // it may have ended
	haltedAt  time.Time
}

// name is the name that EPMD knows the original by.
func (h *handover) name() string {
	name, _, _ := strings.Cut(h.node, "@")
	return name
}

func (h *handover) close() { h.conn.Close() }
