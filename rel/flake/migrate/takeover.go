// Package migrate replaces the original, boundary/flake. [Import] imports the files of a
// stopped original; [Takeover] replaces a running one.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/daemon"
	"github.com/flake-go/flake/rel/flake/original"
	"github.com/flake-go/flake/rel/flake/output"
	"github.com/flake-go/flake/rel/flake/remote"
)

// TakeoverMore is the help of [Takeover].
const TakeoverMore = `It reads the original's settings, writes a configuration from them, and tries
everything that this node needs at startup. Only then does it suspend the original's server,
raise the mark to the time of its last id, halt the original, and run the node. Callers
see their connection end once, as in a restart.

Until the original is halted, a failure leaves it as it was: its server continues and
answers the calls that arrived while it was suspended. The files that were written are
removed.

With -dry-run it stops before suspending the original. It prints who uses the
original, and leaves the original and the directory as they were.

With -config the node uses that configuration, such as one that flake import wrote, and
none is written. Its worker id must be the original's.`

type takeoverFlags struct {
	*cli.Flags
	from, sysConfig, vmArgs, out, timestamp *string
	dryRun                                  *bool
}

// Takeover replaces a running node of the original.
func Takeover(f *cli.Flags) cli.Action {
	t := takeoverFlags{
		Flags:     f,
		from:      f.String("from", "", "the original's running `node`, name@host"),
		sysConfig: f.String("sys-config", "", "show what is not taken from its sys.config, `FILE`"),
		vmArgs:    f.String("vm-args", "", "take the cookie and the listening address from its vm.args, `FILE`"),
		out:       f.String("out", "sys.toml", "write the configuration to `FILE`, which must not exist"),
		timestamp: f.String("timestamp", "", "keep the mark in `FILE`, flake.timestamp_path; "+
			"without it, at the default path"),
	}
	t.dryRun = f.Bool("dry-run", false, "try all that can be tried, and leave the original as it is")
	f.File = f.String("config", "", "use the configuration in `FILE`, and write none")
	f.String("setcookie", "", "the original's `cookie`; other users can see it in ps, so prefer FLAKE_COOKIE")
	noinput := f.Bool("noinput", false, "show no prompt, even if standard input is a terminal")
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		if *t.from == "" {
			return cli.UsageError(errors.New("no node to take over: set -from name@host"))
		}
		if name := f.Given("out", "sys-config", "timestamp", "vm-args"); name != "" && *f.File != "" {
			return cli.UsageError(fmt.Errorf("-%s cannot be combined with -config, which has all the settings", name))
		}
		h, err := t.connect(ctx)
		if err != nil {
			return err
		}
		err = t.replace(ctx, h, stdout, stderr)
		h.Conn.Close()
		if err != nil || *t.dryRun {
			return err
		}
		return daemon.Run(ctx, t.Load, *noinput, stdout, stderr)
	}
}

// replace halts the original, after trying everything that could make this node fail to start. If an error or a dry
// run keeps the original from being told to halt, the original continues, and no new file is left.
func (t *takeoverFlags) replace(ctx context.Context, h *Handover, stdout, stderr io.Writer) (err error) {
	defer func() {
		if (err != nil || *t.dryRun) && !h.halted {
			err = errors.Join(err, h.undo(stdout))
		}
	}()
	if err := t.configure(h, stdout); err != nil {
		return err
	}
	h.printUse(ctx, stdout)
	cfg, err := t.Load()
	if err != nil {
		return err
	}
	lines := output.OpenLog(cfg.Log, stderr)
	defer lines.Close()
	if err := errors.Join(h.tryListening(cfg.Node), h.checkMark()); err != nil {
		return err
	}
	worker, err := daemon.Try(ctx, cfg, lines)
	if err != nil {
		return err
	}
	if worker != uint64(h.Worker) {
		return fmt.Errorf("the original has worker_id %q, and this node would use a different one; "+
			"set flake.worker_id to the original's", h.Worker)
	}
	if *t.dryRun {
		fmt.Fprintf(stdout, "%s can be taken over: it would be suspended and halted, and ids would begin after %s\n",
			h.Node, output.Milliseconds(h.last))
		return nil
	}
	return h.replace(ctx, lines.Logger)
}

// connect connects to the original and reads its settings.
func (t *takeoverFlags) connect(ctx context.Context) (*Handover, error) {
	var s original.Settings
	if err := readFiles(*t.sysConfig, *t.vmArgs, &s); err != nil {
		return nil, cli.UsageError(err)
	}
	cfg, err := t.provisional(s)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, remote.CallTime, errNoAnswer)
	defer cancel()
	h := &Handover{Node: *t.from, settings: s, mark: cfg.Flake.TimestampPath}
	if h.Conn, err = h.dial(ctx, cfg.Node); err != nil {
		return nil, err
	}
	if err = h.read(ctx); err != nil {
		err = fmt.Errorf("node %s: %w", h.Node, err)
	} else if h.mark == "" { // written to the configuration, since a service's default path may differ
		h.mark, err = cli.TimestampPath()
	}
	if err != nil {
		h.Conn.Close()
		return nil, err
	}
	h.settings.Name, h.settings.TimestampPath = h.Node, h.mark
	if filepath.Base(cfg.Node.CookieFrom) != config.HomeCookieFile { // this node reads that file at every startup
		h.settings.Cookie = cfg.Node.Cookie
	}
	return h, nil
}

// provisional returns the configuration that is known before the original is queried. It is
// enough to connect.
func (t *takeoverFlags) provisional(s original.Settings) (config.Config, error) {
	if *t.File == "" {
		t.Before = []config.Flag{{Name: "-from", Key: "node.name", Value: *t.from}}
		if *t.timestamp != "" {
			path, err := filepath.Abs(*t.timestamp)
			if err != nil {
				return config.Config{}, err
			}
			t.Before = append(t.Before, config.Flag{Name: "-timestamp", Key: "flake.timestamp_path", Value: path})
		}
		if s.Cookie != "" {
			t.Before = append(t.Before, config.Flag{Name: "-vm-args", Key: "node.cookie", Value: s.Cookie})
		}
		defer func() { t.Before = nil }()
	}
	cfg, err := t.Load()
	if err != nil {
		return cfg, err
	}
	if cfg.Node.Name != *t.from {
		return cfg, cli.UsageError(fmt.Errorf("node.name is %s, and -from is %s; "+
			"the node must have the original's name", cfg.Node.Name, *t.from))
	}
	if *t.File == "" && s.TLS.On {
		cfg.Node.TLS = s.TLS
	}
	return cfg, nil
}

// dial connects to the original, which must be registered with the EPMD that this node will use.
// This ensures that the original is on this machine, and that its name is free once it has stopped.
func (h *Handover) dial(ctx context.Context, cfg config.Node) (*client.Conn, error) {
	var host string
	h.Name, host, _ = strings.Cut(h.Node, "@")
	dialer, err := remote.Dialer(cfg)
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
	found, err := epmd.Lookup(ctx, dialer.EPMD, h.Name)
	if err != nil {
		return nil, fmt.Errorf("%w; run this on the original's machine, while the original runs", err)
	}
	ip, err := localAddress(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer.Addr = net.JoinHostPort(ip, fmt.Sprint(found.Port))
	h.Epmd, h.Addr = dialer.EPMD, dialer.Addr
	return dialer.Dial(ctx, h.Node)
}

// localAddress returns an address of host, which must be this machine: the port from EPMD
// belongs to a node here, and a node on another machine may have the same name and port.
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
	return "", fmt.Errorf("%s is another machine; run this on the original's machine, while the original runs", host)
}

// configure writes the configuration, unless -config names one, and prints where its settings came from.
func (t *takeoverFlags) configure(h *Handover, stdout io.Writer) error {
	if *t.File != "" {
		return nil
	}
	text, err := h.settings.TOML()
	if err != nil {
		return err
	}
	err = writeNew(*t.out, text) // the cookie is in it
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("-out %s: already exists; name another file, or use this one with -config", *t.out)
	}
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	t.File, h.made = t.out, []string{*t.out}
	if _, err := t.Load(); err != nil {
		return fmt.Errorf("the original's settings are not valid for this node: %w", err)
	}
	printSettings(stdout, h.settings)
	fmt.Fprintf(stdout, "%s: written\n", *t.out)
	return nil
}

// checkMark checks the file of marks, and notes which of the file and its lock do not exist.
func (h *Handover) checkMark() error {
	if err := flake.CheckMarks(h.mark); err != nil {
		return err
	}
	for _, path := range []string{h.mark, h.mark + ".lock"} {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			h.absent = append(h.absent, path)
		}
	}
	return nil
}

// undo removes the files that were created, except files of marks that another node now uses.
func (h *Handover) undo(stdout io.Writer) (err error) {
	if len(h.absent) > 0 {
		if marks, locked := flake.OpenMarks(h.mark, nil); locked == nil {
			defer marks.Close()
			h.made = append(h.made, h.absent...)
		}
	}
	for _, path := range h.made {
		switch rmErr := os.Remove(path); {
		case rmErr == nil:
			fmt.Fprintf(stdout, "%s: removed, because nothing was taken over\n", path)
		case !errors.Is(rmErr, fs.ErrNotExist):
			err = errors.Join(err, rmErr)
		}
	}
	return err
}
