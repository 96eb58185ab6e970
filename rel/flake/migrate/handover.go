package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/remote"
)

var errNoAnswer = fmt.Errorf("no answer within %v", remote.CallTime)

const (
	// MostSuspended is how long the original's server may stay suspended before it is resumed,
	// unless the original is halted.
	MostSuspended = 2 * time.Second

	// haltTime is how long the original may take to stop.
	haltTime = 10 * time.Second

	// MostAhead is the furthest that the original's last id may be ahead of this machine's
	// clock. The original's own clock can run ahead for a while.
	MostAhead = MostSuspended / 2
)

// guard is the code that the original evaluates. It starts a process there that suspends the
// server, and always resumes it unless the guard is told in time to halt the original. So the server
// continues even if this process ends or hangs, and late orders are ignored. The guard tells heart not
// to restart the original. It sends the message that heart:set_cmd sends, since heart:set_cmd itself
// would wait forever. The guard's registered name keeps a second guard from starting.
const guard = `
Server = whereis(flake), Parent = self(), Tag = make_ref(), Most = %d,
{Guard, Watch} = spawn_monitor(fun() ->
  Begin = erlang:now(),
  May = fun() ->
    timer:now_diff(erlang:now(), Begin) < Most * 1000 orelse exit(late),
    whereis(flake) =:= Server orelse exit(another_server)
  end,
  register(flake_takeover, self()),
  try
    monitor_node(%s, true),
    ok = sys:suspend(Server, Most),
    Parent ! {Tag, sys:get_status(Server, Most)},
    receive
      halt ->
        May(),
        case whereis(heart) of
          undefined -> ok;
          Heart -> Heart ! {self(), set_cmd, "true"}, receive {heart, ok} -> ok after Most div 4 -> exit(heart) end
        end,
        May(),
        erlang:halt(0, [{flush, false}]);
      resume -> ok;
      {nodedown, _} -> ok
    after Most -> ok
    end
  after
    catch sys:resume(Server, infinity)
  end
end),
receive
  {Tag, Status} -> demonitor(Watch), {Guard, Status};
  {'DOWN', Watch, _, _, Why} -> {failed, Why}
end.`

// warm loads the modules that guard needs, because loading them for the first time is slow.
const warm = `[code:ensure_loaded(M) || M <- [sys, timer, erl_eval, erl_internal, orddict]],
spawn_monitor(fun() -> try ok after ok end end), receive {'DOWN', _, _, _, _} -> ok end.`

// tell sends the guard an order and waits until the guard ends. An original that halts does not answer.
const tell = `Watch = monitor(process, Guard), Guard ! Order, receive {'DOWN', Watch, _, _, Why} -> Why end.`

// end halts the original, after raising the mark to its last id, so that later ids are above that id.
func (h *Handover) end(ctx context.Context, log *slog.Logger) (err error) {
	if err := h.Prepare(ctx); err != nil {
		return fmt.Errorf("node %s: %w", h.Node, err)
	}
	h.suspended = time.Now()
	defer func() {
		if err != nil && !h.halted {
			err = h.resume(err, log)
		}
	}()
	if err := h.Suspend(ctx); err != nil {
		return err
	}
	log.Info("suspended the original", "node", h.Node, "last", h.last)
	if _, err := flake.RaiseMark(h.mark, h.last); err != nil {
		return err
	}
	if err := h.Halt(ctx); err != nil {
		return err
	}
	log.Info("halted the original: if this node does not start now, start it without takeover, or the original again",
		"node", h.Node, "last", h.last, "worker", h.Worker, "suspended", time.Since(h.suspended))
	return nil
}

// tryListening returns an error if the node cannot listen at its address, unless the original listens there.
func (h *Handover) tryListening(cfg config.Node) error {
	_, port, _ := net.SplitHostPort(h.Addr)
	if cfg.FixedPort() == "" || cfg.FixedPort() == port {
		return nil
	}
	l, err := net.Listen(node.Network(cfg.Listen), cfg.Listen)
	if err != nil {
		return fmt.Errorf("node.listen: %w", err)
	}
	return l.Close()
}

// Prepare parses the orders in the original and loads the modules that they need.
func (h *Handover) Prepare(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, remote.CallTime, errNoAnswer)
	defer cancel()
	self := etf.Format(nil, etf.Atom(h.Conn.Name()))
	var warmed etf.Term
	for _, order := range []struct {
		text   string
		parsed *etf.Term
	}{{warm, &warmed}, {fmt.Sprintf(guard, MostSuspended.Milliseconds(), self), &h.suspending}, {tell, &h.tell}} {
		if *order.parsed, err = h.parse(ctx, order.text); err != nil {
			return err
		}
	}
	_, err = h.eval(ctx, warmed)
	return err
}

// Suspend suspends the original's server and reads the time of its last id.
func (h *Handover) Suspend(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, MostSuspended, fmt.Errorf("no answer within %v", MostSuspended))
	defer cancel()
	answer, err := h.eval(ctx, h.suspending)
	status, _ := answer.(etf.Tuple)
	if len(status) == 2 {
		h.guard, _ = status[0].(etf.Pid)
	}
	if err == nil && h.guard == "" {
		err = errors.New(brief(answer))
	}
	if err != nil {
		return fmt.Errorf("the original's server was not suspended: %w", err)
	}
	last, worker, err := stateOf(status[1])
	if err != nil {
		return err
	}
	if worker != h.Worker {
		return errors.New("its worker id has changed; start again")
	}
	h.last = last
	return nil
}

// Halt halts the original and waits until it has stopped. Once the order to halt is sent, Halt
// ignores ctx until the outcome is known.
func (h *Handover) Halt(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTime)
	defer cancel()
	h.halted = true
	if why, err := h.order(ctx, "halt"); err == nil {
		h.halted = false
		return fmt.Errorf("the original did not halt: %s", brief(why))
	}
	for !h.Gone(ctx) {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the original was told to halt, and after %v EPMD still has its name, "+
				"or its port still accepts connections; if it still runs, it continues; "+
				"if not, start it, or this node without takeover", haltTime)
		}
	}
	return nil
}

// Gone reports whether the original has stopped: EPMD has forgotten it, or has stopped too (as
// happens if one service started both), and nothing listens at the original's address.
func (h *Handover) Gone(ctx context.Context) bool {
	_, err := epmd.Lookup(ctx, h.Epmd, h.Name)
	if !errors.Is(err, epmd.ErrNotFound) && !errors.Is(err, syscall.ECONNREFUSED) {
		return false
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", h.Addr)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// resume resumes the original's server and returns why, extended by the error if that fails.
// If there is no guard, resume sends nothing: closing the connection has the same effect.
func (h *Handover) resume(why error, log *slog.Logger) error {
	if h.guard == "" {
		return why
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*MostSuspended)
	defer cancel()
	if _, err := h.order(ctx, "resume"); err != nil {
		return fmt.Errorf("%w (the original's server was told to continue, and does so by itself within %v: %w)",
			why, MostSuspended, err)
	}
	log.Info("the original continues", "node", h.Node, "suspended", time.Since(h.suspended))
	return why
}
