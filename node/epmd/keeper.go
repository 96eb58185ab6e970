// Package epmd speaks the protocol of EPMD, the Erlang port mapper daemon, as described in the
// chapter "Protocol between EPMD and Erlang nodes" of the distribution protocol:
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html
//
// Start at [Keeper], which keeps one node registered with the EPMD of its host and starts an
// EPMD if none is running, and at [Lookup], which asks an EPMD for a node's port. [Server] is
// the embedded EPMD.
//
// Every message has Append, which appends its tag and payload to a slice, and Decode, which
// reads them and does not retain its source. Requests, but not replies, are preceded by a
// two-byte length, which is not part of the message.
//
// The server does not perform KILL, STOP or DUMP, and closes the connection on requests from
// releases before R3 (ALIVE, PORT_PLEASE).
package epmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/socket"
)

const (
	// The pause before a node registers again; it doubles with each failure.
	retryMin = 100 * time.Millisecond
	retryMax = 10 * time.Second

	// nameTime is how long Start waits for a name that is taken. An EPMD may be slow to notice that
	// the last node with that name has ended.
	nameTime = time.Second

	// patience is how long another program's EPMD must be down before mode Auto starts one. Until
	// then its port stays free, so that the other EPMD can be restarted.
	patience = 30 * time.Second
)

// Keeper keeps one node registered, and registers it again whenever the connection to its EPMD
// is lost. Set the fields and call Start; call Prepare first if other nodes need the EPMD
// earlier.
type Keeper struct {
	Mode  Mode         // Auto if empty
	Port  uint16       // the EPMD's port in mode Auto; 0 means DefaultPort
	Node  Node         // Start sets its name
	Fixed bool         // in mode Off, other nodes also listen on Node.Port
	Log   *slog.Logger // nil means slog.Default

	program  string        // OTP's daemon; empty means "epmd"
	patience time.Duration // 0 means the constant patience

	host    string    // the node's host
	lostAt  time.Time // when the connection to another program's EPMD was lost
	server  *Server   // our own EPMD, or nil
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex // guards state
	state State
}

// Prepare starts an EPMD if none is running and the mode is [Auto]. Close stops that
// EPMD if it runs in this process.
func (k *Keeper) Prepare(ctx context.Context) error {
	if err := k.fill(); err != nil || k.Mode != Auto {
		return err
	}
	if errors.Is(probe(ctx, k.Mode.addr(k.Port)), syscall.ECONNREFUSED) {
		if err := k.provide(ctx); !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return nil // Start reports other errors
}

// fill sets zero fields to their defaults.
func (k *Keeper) fill() (err error) {
	k.Log = cmp.Or(k.Log, slog.Default())
	k.Mode = cmp.Or(k.Mode, Auto)
	k.program = cmp.Or(k.program, "epmd")
	k.patience = cmp.Or(k.patience, patience)
	if k.Port == 0 {
		k.Port, err = DefaultPort()
	}
	return err
}

// Start registers the node name@host and keeps it registered until Close is called or ctx ends. It
// fails if the first registration fails, with ErrNameTaken if the name is in use.
func (k *Keeper) Start(ctx context.Context, nodename string) (err error) {
	if k.Node.Name, k.host, err = splitName(nodename); err != nil {
		return err
	}
	if err := k.fill(); err != nil {
		return err
	}
	k.state.Addr = k.Mode.addr(k.Port)
	if k.Mode == Off {
		return nil
	}
	ctx, k.cancel = context.WithCancel(ctx)
	reg, err := k.register(ctx)
	for end := time.Now().Add(nameTime); errors.Is(err, ErrNameTaken) && time.Now().Before(end); {
		pause(ctx, retryMin)
		reg, err = k.register(ctx)
	}
	if err != nil {
		k.cancel()
		k.stopServing()
		return err
	}
	k.running.Go(func() { k.run(ctx, reg) })
	return nil
}

// Close unregisters the node and stops our own EPMD. It may be called more than once, and before
// Start.
func (k *Keeper) Close() {
	if k.cancel != nil {
		k.cancel()
	}
	k.running.Wait()
	k.stopServing() // if run has not done so
}

// State returns the current state of the registration.
func (k *Keeper) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

func (k *Keeper) run(ctx context.Context, reg net.Conn) {
	defer k.stopServing()
	for reg != nil {
		awaitEnd(ctx, reg)
		if k.server == nil {
			k.lostAt = time.Now()
		}
		if ctx.Err() == nil {
			k.lost(errors.New("EPMD closed the connection"))
		}
		reg = k.renew(ctx)
	}
}

// renew registers the node again, or returns nil when ctx ends.
func (k *Keeper) renew(ctx context.Context) net.Conn {
	for wait := retryMin; pause(ctx, wait); wait = min(2*wait, retryMax) {
		reg, err := k.register(ctx)
		if err == nil {
			return reg
		}
		if ctx.Err() == nil {
			k.lost(err)
		}
	}
	return nil
}

// pause waits for d, and reports whether ctx has not ended before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// register tries once to register the node. If nothing listens on the port, mode Auto first
// starts an EPMD, unless another program's EPMD was lost less than patience ago.
func (k *Keeper) register(ctx context.Context) (net.Conn, error) {
	addr := k.Mode.addr(k.Port)
	reg, err := Register(ctx, addr, k.Node)
	if errors.Is(err, syscall.ECONNREFUSED) && k.Mode == Auto && k.server == nil && time.Since(k.lostAt) >= k.patience {
		provided := k.provide(ctx)
		if provided != nil && !errors.Is(provided, syscall.EADDRINUSE) {
			return nil, provided
		}
		// If the port is in use, either another node has started its EPMD first, or another program has the
		// port at another address.
		if reg, err = Register(ctx, addr, k.Node); errors.Is(err, syscall.ECONNREFUSED) && provided != nil {
			err = fmt.Errorf("%w: %w", errNoAnswer, provided)
		}
	}
	if err != nil {
		return nil, err
	}
	s := State{Addr: addr, Serving: k.server != nil, Registered: true}
	k.set(s)
	k.Log.Info("epmd: registered", "node", k.Node.Name, "port", k.Node.Port, "address", addr, "own", s.Serving)
	return reg, nil
}

// lost reports that the node is not registered, unless it has just reported the same failure.
func (k *Keeper) lost(err error) {
	old := k.State()
	s := State{Addr: old.Addr, Serving: k.server != nil, Err: err}
	if s.String() == old.String() {
		return
	}
	k.set(s)
	k.Log.Warn("epmd: not registered", "node", k.Node.Name, "address", s.Addr, "err", err)
}

func (k *Keeper) set(s State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = s
}

// State is the state of a node's registration.
type State struct {
	Addr       string // the EPMD's address; empty in mode Off
	Serving    bool   // the EPMD is our own
	Registered bool
	Err        error // the cause if the node is not registered
}

// String describes the state for operators.
func (s State) String() string {
	switch {
	case s.Addr == "":
		return "not registered: EPMD is off"
	case s.Registered && s.Serving:
		return fmt.Sprintf("registered with its own EPMD at %s", s.Addr)
	case s.Registered:
		return fmt.Sprintf("registered with the EPMD at %s", s.Addr)
	}
	return fmt.Sprintf("not registered: %v", s.Err)
}

// Mode selects the EPMD with which a node registers: Auto, Off or "host:port".
type Mode string

const (
	Auto Mode = "auto" // the one running on this host, otherwise OTP's daemon if installed, otherwise our own
	Off  Mode = "off"  // no registration
)

const defaultPort = 4369

// DefaultPort returns EPMD's port: ERL_EPMD_PORT in the environment if set, otherwise 4369.
func DefaultPort() (uint16, error) {
	env := os.Getenv("ERL_EPMD_PORT")
	if env == "" {
		return defaultPort, nil
	}
	port, err := strconv.ParseUint(env, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("epmd: ERL_EPMD_PORT is %q: must be a port from 1 to 65535", env)
	}
	return uint16(port), nil
}

// addr returns the address of the EPMD, or "" for Off.
func (m Mode) addr(port uint16) string {
	switch m {
	case Auto:
		return JoinPort(loopback, port)
	case Off:
		return ""
	}
	return string(m)
}

const loopback = "127.0.0.1"

// JoinPort returns the address host:port.
func JoinPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// Find asks the EPMD on its host for the node name@host. It returns ErrNotFound if the node is
// not registered. In mode Off it returns our own port if Fixed is set, like Erlang with
// -erl_epmd_port, and fails if not.
func (k *Keeper) Find(ctx context.Context, nodename string) (n Node, host string, err error) {
	name, host, err := splitName(nodename)
	if err != nil {
		return Node{}, "", err
	}
	switch {
	case k.Mode == Off && k.Fixed:
		return k.Node, host, nil
	case k.Mode == Off:
		return Node{}, "", fmt.Errorf("epmd: look up %q: EPMD is off", nodename)
	}
	n, err = Lookup(ctx, k.addrOf(host), name)
	return n, host, err
}

// addrOf returns the address of a host's EPMD. For our own host that is the EPMD that we use.
func (k *Keeper) addrOf(name string) string {
	if name == k.host || host.IsLoopback(name) {
		return k.Mode.addr(k.Port)
	}
	return JoinPort(name, k.Port)
}

func splitName(nodename string) (name, host string, err error) {
	name, host, ok := strings.Cut(nodename, "@")
	if !ok || name == "" || host == "" || strings.Contains(host, "@") {
		return "", "", fmt.Errorf("epmd: node name %q: must be name@host", nodename)
	}
	return name, host, nil
}

// provide starts an EPMD on Port, where none is listening at the loopback address. Like erl, it starts OTP's
// daemon, because the daemon outlives this process; if the daemon is not installed or does not start,
// provide starts our own EPMD.
func (k *Keeper) provide(ctx context.Context) error {
	if path, err := exec.LookPath(k.program); err == nil {
		err := k.startDaemon(ctx, path)
		if err == nil || ctx.Err() != nil {
			return err
		}
		k.Log.Warn("epmd: cannot start the daemon; serving an EPMD instead", "file", path, "err", err)
	}
	return k.serve()
}

// startDaemon runs epmd -daemon and waits until it listens.
func (k *Keeper) startDaemon(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := exec.CommandContext(ctx, path, "-daemon", "-port", fmt.Sprint(k.Port)).Run(); err != nil {
		return err
	}
	const poll = 10 * time.Millisecond
	for {
		if err := probe(ctx, k.Mode.addr(k.Port)); err == nil || !pause(ctx, poll) {
			return err
		}
	}
}

// serve starts our own EPMD on the listeners that listen returns.
func (k *Keeper) serve() error {
	ls, err := listen(k.Port)
	if err != nil {
		return fmt.Errorf("epmd: serve: %w", err)
	}
	k.server = NewServer(k.Log)
	for _, l := range ls {
		k.server.Serve(socket.Listener(l, k.Log))
	}
	return nil
}

// listen listens, like the daemon of OTP 29, on the addresses in ERL_EPMD_ADDRESS and on loopback, or on all
// addresses if that variable is not set. The IPv6 loopback address is optional unless the variable
// contains it, because the system may not have it.
func listen(port uint16) (ls []net.Listener, err error) {
	env := os.Getenv("ERL_EPMD_ADDRESS")
	var addrs []netip.Addr
	for field := range strings.FieldsFuncSeq(env, func(r rune) bool { return r == ',' || r == ' ' }) {
		ip, err := netip.ParseAddr(field)
		if err != nil {
			return nil, fmt.Errorf("ERL_EPMD_ADDRESS is %q: must be IP addresses separated by commas", env)
		}
		addrs = append(addrs, ip.Unmap())
	}
	if len(addrs) == 0 {
		l, err := net.Listen("tcp", JoinPort("", port))
		return []net.Listener{l}, err
	}
	loopback4, loopback6 := netip.MustParseAddr(loopback), netip.IPv6Loopback()
	optional6 := !slices.Contains(addrs, loopback6)
	addrs = append(addrs, loopback4, loopback6)
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	for _, addr := range addrs {
		network, all := "tcp4", netip.IPv4Unspecified()
		if addr.Is6() {
			network, all = "tcp6", netip.IPv6Unspecified()
		}
		if addr != all && slices.Contains(addrs, all) {
			continue
		}
		l, err := net.Listen(network, netip.AddrPortFrom(addr, port).String())
		if err == nil {
			ls = append(ls, l)
		} else if addr != loopback6 || !optional6 {
			for _, l := range ls {
				l.Close()
			}
			return nil, err
		}
	}
	return ls, nil
}

// stopServing stops our own EPMD and logs the other nodes that are registered with it.
func (k *Keeper) stopServing() {
	if k.server == nil {
		return
	}
	var others []string
	for _, n := range k.server.nodes() {
		if n.Name != k.Node.Name {
			others = append(others, n.Name)
		}
	}
	if len(others) > 0 {
		k.Log.Warn("epmd: the node's own EPMD is stopping, but other nodes are registered with it; "+
			"those of OTP 23 must be restarted to be found", "nodes", others)
	}
	k.server.Close()
	k.server = nil
}
