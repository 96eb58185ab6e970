package epmd

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"time"
)

const (
	// The wait before a lost node registers again, doubled after each failure.
	retryMin = 100 * time.Millisecond
	retryMax = 10 * time.Second

	// nameTime is how long a start waits for its name: an EPMD may be slow to notice that a
	// node of that name has just ended.
	nameTime = time.Second

	// patience is how long another's EPMD may be gone before mode Auto starts one: whoever
	// restarts it must find its port free.
	patience = 30 * time.Second
)

// Keeper keeps one node registered, and registers it anew whenever its EPMD is lost. Set the
// fields, then Start; Prepare first if others may need the EPMD sooner.
type Keeper struct {
	Mode     Mode   // Auto if empty
	Port     uint16 // of the EPMD in mode Auto, 0 for DefaultPort
	Host     string // of the node
	Node     Node
	Fixed    bool         // in mode Off, other nodes listen at Node.Port too
	Log      *slog.Logger // nil for slog.Default
	OnChange func(State)  // optional, called in order; must not call Close

	program  string        // OTP's daemon, "epmd" if empty
	patience time.Duration // 0 for patience

	lostAt  time.Time // when an EPMD that was not ours was lost
	mu      sync.Mutex
	state   State
	server  *Server // the own EPMD, nil if there is none
	serving sync.WaitGroup
	cancel  context.CancelFunc
	done    chan struct{}
}

// Prepare makes sure, in mode Auto, that there is an EPMD. Close ends it if it is our own.
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
	return nil // Start reports anything else
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
// the first registration does, with ErrNameTaken if the name is in use.
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

// State returns which EPMD the node uses now.
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

// register tries once. If nobody listens, mode Auto first starts an EPMD, unless there was
// another's a moment ago.
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

var errGone = errors.New("it is gone")

// lost reports that the node is not registered. It does not repeat the same failure.
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
