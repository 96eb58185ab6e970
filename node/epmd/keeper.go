// Package epmd speaks the protocol of EPMD, the Erlang port mapper daemon, as described in the
// chapter "Protocol between EPMD and Erlang nodes" of the distribution protocol:
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html
//
// Start at [Keeper], which keeps one node registered with the EPMD of its host and starts an
// EPMD if none is running, and at [Lookup], which asks an EPMD for a node's port. [Server] is
// the embedded EPMD.
//
// Every message has Append, which appends its tag and payload to a slice, and Decode, which
// reads them and does not keep its source. Requests, but not replies, have a two-byte length,
// which is not part of the message.
//
// The server does not perform KILL, STOP and DUMP, and closes the connection at requests of
// releases before R3 (ALIVE, PORT_PLEASE).
package epmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// The pause before a node registers again; it doubles with each failure.
	retryMin = 100 * time.Millisecond
	retryMax = 10 * time.Second

	// nameTime is the time that Start waits for the name, because an EPMD may be slow to notice
	// that a node of that name has just ended.
	nameTime = time.Second

	// patience is the time for which another program's EPMD must be down before mode Auto starts
	// one, so that its port is free when it is restarted.
	patience = 30 * time.Second
)

// Keeper keeps one node registered, and registers it again whenever the connection to its EPMD
// is lost. Set the fields and call Start; call Prepare first if other nodes need the EPMD
// before.
type Keeper struct {
	Mode     Mode   // Auto if empty
	Port     uint16 // of the EPMD in mode Auto; 0 means DefaultPort
	Host     string // of the node
	Node     Node
	Fixed    bool         // in mode Off, other nodes listen at Node.Port too
	Log      *slog.Logger // nil means slog.Default
	OnChange func(State)  // optional; called in order; must not call Close

	program  string        // OTP's daemon; empty means "epmd"
	patience time.Duration // 0 means patience

	lostAt  time.Time // time at which another program's EPMD was lost
	mu      sync.Mutex
	state   State
	server  *Server // our own EPMD, or nil
	serving sync.WaitGroup
	cancel  context.CancelFunc
	done    chan struct{}
}

// Prepare starts an EPMD in mode Auto if none is running. Close ends it if it is our own.
func (k *Keeper) Prepare(ctx context.Context) error {
	if err := k.fill(); err != nil || k.Mode != Auto {
		return err
	}
	conn, err := dial(ctx, k.Mode.addr(k.Port))
	switch {
	case err == nil:
		conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		return k.provide(ctx)
	}
	return nil // Start reports other errors
}

// fill sets zero fields to their defaults.
func (k *Keeper) fill() (err error) {
	if k.Log == nil {
		k.Log = slog.Default()
	}
	if k.Mode == "" {
		k.Mode = Auto
	}
	if k.program == "" {
		k.program = "epmd"
	}
	if k.patience == 0 {
		k.patience = patience
	}
	if k.Port == 0 {
		k.Port, err = DefaultPort()
	}
	return err
}

// Start registers the node and keeps it registered until Close or the end of ctx. It fails if
// the first registration fails, with ErrNameTaken if the name is in use.
func (k *Keeper) Start(ctx context.Context) error {
	if err := k.fill(); err != nil {
		return err
	}
	k.state.Addr = k.Mode.addr(k.Port)
	if k.Mode == Off {
		k.set(k.state)
		return nil
	}
	ctx, k.cancel = context.WithCancel(ctx)
	reg, err := k.register(ctx)
	for end := time.Now().Add(nameTime); errors.Is(err, ErrNameTaken) && time.Now().Before(end); {
		select {
		case <-ctx.Done():
		case <-time.After(retryMin):
		}
		reg, err = k.register(ctx)
	}
	if err != nil {
		k.cancel()
		k.stopServing()
		return err
	}
	k.done = make(chan struct{})
	go k.run(ctx, reg)
	return nil
}

// Close unregisters the node and stops our own EPMD. It may be called again, or before Start.
func (k *Keeper) Close() {
	if k.done == nil {
		k.stopServing()
		return
	}
	k.cancel()
	<-k.done
}

// State returns the current state of the registration.
func (k *Keeper) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

func (k *Keeper) run(ctx context.Context, reg *Registration) {
	defer close(k.done)
	defer k.stopServing()
	for reg != nil {
		select {
		case <-ctx.Done():
			reg.Close()
			return
		case <-reg.Done():
		}
		if k.server == nil {
			k.lostAt = time.Now()
		}
		if ctx.Err() == nil {
			k.lost(nil)
		}
		reg = k.renew(ctx)
	}
}

// renew registers the node again, or returns nil at the end of ctx.
func (k *Keeper) renew(ctx context.Context) *Registration {
	for wait := retryMin; ; wait = min(2*wait, retryMax) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		reg, err := k.register(ctx)
		if err == nil {
			return reg
		}
		if ctx.Err() == nil {
			k.lost(err)
		}
	}
}

// register tries once to register the node. If the port is not open, mode Auto first starts an
// EPMD, unless another program's was lost less than patience ago.
func (k *Keeper) register(ctx context.Context) (*Registration, error) {
	addr := k.Mode.addr(k.Port)
	reg, err := Register(ctx, addr, k.Node)
	if errors.Is(err, syscall.ECONNREFUSED) && k.Mode == Auto && k.server == nil && time.Since(k.lostAt) >= k.patience {
		if err := k.provide(ctx); err != nil {
			return nil, err
		}
		reg, err = Register(ctx, addr, k.Node)
	}
	if err != nil {
		return nil, err
	}
	s := State{Addr: addr, Serving: k.server != nil, Registered: true, Creation: reg.Creation}
	k.set(s)
	k.Log.Info("epmd: registered", "node", k.Node.Name, "port", k.Node.Port, "address", addr, "own", s.Serving)
	return reg, nil
}

var errGone = errors.New("EPMD has ended")

// lost reports that the node is not registered, once for each failure.
func (k *Keeper) lost(err error) {
	old := k.State()
	s := State{Addr: old.Addr, Serving: k.server != nil, Err: err}
	if s.String() == old.String() {
		return
	}
	k.set(s)
	if err == nil {
		err = errGone
	}
	k.Log.Warn("epmd: not registered", "node", k.Node.Name, "address", s.Addr, "err", err)
}

func (k *Keeper) set(s State) {
	k.mu.Lock()
	k.state = s
	k.mu.Unlock()
	if k.OnChange != nil {
		k.OnChange(s)
	}
}

// State is the state of a node's registration.
type State struct {
	Addr       string // of the EPMD; empty in mode Off
	Serving    bool   // whether the EPMD is our own
	Registered bool
	Creation   uint32 // of the registration
	Err        error  // the cause if the node is not registered, or nil
}

// String describes the state for operators.
func (s State) String() string {
	switch {
	case s.Addr == "":
		return "not registered: EPMD is off"
	case s.Registered && s.Serving:
		return fmt.Sprintf("registered with the EPMD of its own at %s", s.Addr)
	case s.Registered:
		return fmt.Sprintf("registered with the EPMD at %s", s.Addr)
	case s.Err != nil:
		return fmt.Sprintf("not registered: %v", s.Err)
	}
	return fmt.Sprintf("not registered: the EPMD at %s has ended", s.Addr)
}

// Mode selects the EPMD with which a node registers: Auto, Off or "host:port".
type Mode string

const (
	Auto Mode = "auto" // the one running on this host, else OTP's daemon, else our own
	Off  Mode = "off"  // no registration
)

const defaultPort = 4369

// DefaultPort returns EPMD's port: ERL_EPMD_PORT in the environment if set, else 4369.
func DefaultPort() (uint16, error) {
	env := os.Getenv("ERL_EPMD_PORT")
	if env == "" {
		return defaultPort, nil
	}
	port, err := strconv.ParseUint(env, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("epmd: ERL_EPMD_PORT is %q, must be a port from 1 to 65535", env)
	}
	return uint16(port), nil
}

// addr returns the address of the EPMD, or "" for Off.
func (m Mode) addr(port uint16) string {
	switch m {
	case Auto:
		return joinPort(loopback, port)
	case Off:
		return ""
	}
	return string(m)
}

const (
	loopback  = "127.0.0.1"
	loopback6 = "::1"
)

func joinPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// ErrOff is returned by Find in mode Off.
var ErrOff = errors.New("EPMD is off")

// Find asks the EPMD of its host for the node name@host. It returns ErrNotFound if the node is
// not registered. In mode Off it returns our own port if that is fixed, like Erlang with
// -erl_epmd_port, or else ErrOff.
func (k *Keeper) Find(ctx context.Context, nodename string) (n Node, host string, err error) {
	name, host, err := splitName(nodename)
	if err != nil {
		return Node{}, "", err
	}
	switch {
	case k.Mode == Off && k.Fixed:
		return k.Node, host, nil
	case k.Mode == Off:
		return Node{}, "", fmt.Errorf("epmd: look up %q: %w", nodename, ErrOff)
	}
	n, err = Lookup(ctx, k.addrOf(host), name)
	return n, host, err
}

// StartAs is [Keeper.Start] for the node name@host.
func (k *Keeper) StartAs(ctx context.Context, nodename string) error {
	name, host, err := splitName(nodename)
	if err != nil {
		return err
	}
	k.Host, k.Node.Name = host, name
	return k.Start(ctx)
}

// addrOf returns the address of the EPMD of host, which for our own host is the one we use.
func (k *Keeper) addrOf(host string) string {
	ip := net.ParseIP(host)
	if host == k.Host || host == "localhost" || ip != nil && ip.IsLoopback() {
		return k.Mode.addr(k.Port)
	}
	return joinPort(host, k.Port)
}

func splitName(nodename string) (name, host string, err error) {
	name, host, ok := strings.Cut(nodename, "@")
	if !ok || name == "" || host == "" || strings.Contains(host, "@") {
		return "", "", fmt.Errorf("epmd: node name %q: must be name@host", nodename)
	}
	return name, host, nil
}
