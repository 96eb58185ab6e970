package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/original"
	"github.com/flake-go/flake/rel/flake/remote"
)

var errNoAnswer = fmt.Errorf("no answer within %v", remote.CallTime)

const (
	// MostSuspended is how long the original's server may stay suspended. If the original is not
	// halted by then, the server is resumed.
	MostSuspended = 2 * time.Second

	// haltTime is how long the original may take to stop.
	haltTime = 10 * time.Second

	// MostAhead is the furthest that the original's last id may be ahead of this machine's
	// clock. The original's own clock can run ahead for a while.
	MostAhead = MostSuspended / 2
)

// A Handover is the state of a takeover.
type Handover struct {
	Node, Name string // name@host, and the name in EPMD
	Addr, Epmd string
	Conn       *client.Conn
	settings   original.Settings
	Worker     flake.Worker // the original's
	last       time.Time    // the time of the original's last id

	suspending, tell etf.Term // guard and tell, parsed by the original

	guard     etf.Pid   // the process that suspends the original
	suspended time.Time // when the original stopped returning ids
	halted    bool      // the original was told to halt, and may have done so

	mark   string   // the node's file of marks
	absent []string // which of mark and its lock did not exist before
	made   []string // the other files that were created
}

// guard is code that the original evaluates. The code starts a process in the original, the guard, which
// suspends the server. If an order to halt arrives in time, the guard halts the original; otherwise it
// resumes the server. So the server continues even if this program ends or hangs, and late orders are
// ignored. The guard tells heart not to restart the original. It sends the message that heart:set_cmd sends,
// since heart:set_cmd itself would wait forever. The guard's registered name keeps a second guard from starting.
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

// replace suspends the original's server, raises the mark to the time of its last id, so that this node's ids are
// above that id, and then halts the original.
func (h *Handover) replace(ctx context.Context, log *slog.Logger) (err error) {
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

// Prepare makes the original parse the orders and load the modules that they need.
func (h *Handover) Prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, remote.CallTime, errNoAnswer)
	defer cancel()
	self := etf.Format(nil, etf.Atom(h.Conn.Name()))
	warmed, err := h.parse(ctx, warm)
	if err == nil {
		h.suspending, err = h.parse(ctx, fmt.Sprintf(guard, MostSuspended.Milliseconds(), self))
	}
	if err == nil {
		h.tell, err = h.parse(ctx, tell)
	}
	if err == nil {
		_, err = h.eval(ctx, warmed)
	}
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
		return errors.New("the original's worker id has changed; start the takeover again")
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
				"or its port still accepts connections; if it is still running, it continues; "+
				"if not, start it, or this node without takeover", haltTime)
		}
	}
	return nil
}

// Gone reports whether the original has stopped. It has if nothing listens at its address and EPMD has
// either forgotten it or stopped too, as happens if one service started both.
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

// resume resumes the original's server and returns why, with resume's own error if it fails.
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

// apply calls a function of the original. If tag is not empty, the function must return a tuple that begins with it,
// and apply returns what follows.
func (h *Handover) apply(ctx context.Context, tag, module, function etf.Atom, args ...etf.Term) (etf.Term, error) {
	result, err := h.Conn.Apply(ctx, module, function, args)
	if err != nil {
		return nil, err
	}
	t, _ := result.(etf.Tuple)
	switch reason, failed := remote.BadRPC(result); {
	case failed:
		result = reason
	case tag == "":
		return result, nil
	case len(t) > 1 && t[0] == tag:
		return t[1], nil
	}
	return nil, fmt.Errorf("%s:%s/%d: %s", module, function, len(args), brief(result))
}

// brief returns a term from the original as short text for an error.
func brief(t etf.Term) string { return fmt.Sprintf("%.300s", etf.Format(nil, t)) }

// parse asks the original to parse text, and returns the result.
func (h *Handover) parse(ctx context.Context, text string) (etf.Term, error) {
	tokens, err := h.apply(ctx, "ok", "erl_scan", "string", etf.String(text))
	if err != nil {
		return nil, err
	}
	return h.apply(ctx, "ok", "erl_parse", "parse_exprs", tokens)
}

func (h *Handover) eval(ctx context.Context, expressions etf.Term, bindings ...etf.Term) (etf.Term, error) {
	return h.apply(ctx, "value", "erl_eval", "exprs", expressions, etf.List(bindings))
}

// order sends the guard an order and returns why the guard ended.
func (h *Handover) order(ctx context.Context, order etf.Atom) (why etf.Term, err error) {
	return h.eval(ctx, h.tell, etf.Tuple{etf.Atom("Guard"), h.guard}, etf.Tuple{etf.Atom("Order"), order})
}

// use asks which nodes are connected to the original, which processes with local or global names would end with it,
// which other names global knows, and which groups pg has. It leaves out OTP's and the original's own processes.
const use = `[nodes(visible), nodes(hidden),
 [Name || Name <- registered(), Pid <- [whereis(Name)], is_pid(Pid), not lists:member(Name, [application_controller,
   erl_prim_loader, erts_code_purger, heart, init, logger, socket_registry, flake, flake_sup, persistent_timer]),
   case application:get_application(Pid) of
     {ok, Of} -> not lists:member(Of, [kernel, stdlib, sasl, crypto, asn1, public_key, ssl, os_mon, flake]);
     undefined -> true
   end] ++
   [Name || Name <- global:registered_names(), Pid <- [global:whereis_name(Name)], is_pid(Pid), node(Pid) =:= node()],
 [Name || Name <- global:registered_names(), Pid <- [global:whereis_name(Name)], is_pid(Pid), node(Pid) =/= node()],
 [Group || Pg <- [pg, pg2], whereis(Pg) =/= undefined, Group <- Pg:which_groups()]].`

// printUse prints which nodes, names and groups depend on the original, or why that is not known.
func (h *Handover) printUse(ctx context.Context, w io.Writer) {
	ctx, cancel := context.WithTimeoutCause(ctx, remote.CallTime, errNoAnswer)
	defer cancel()
	var answer etf.Term
	parsed, err := h.parse(ctx, use)
	if err == nil {
		answer, err = h.eval(ctx, parsed)
	}
	all, _ := etf.Elements(answer)
	if err == nil && len(all) != 5 {
		err = errors.New(brief(answer))
	}
	if err != nil {
		fmt.Fprintln(w, "found: cannot tell who uses the original:", escape.Text(err.Error()))
		return
	}
	for i, what := range []string{"connected", "connected as hidden", "named, and lost with the original",
		"global names", "pg groups"} {
		const shown = 20
		found, _ := etf.Elements(all[i])
		found = slices.DeleteFunc(found, func(t etf.Term) bool { return t == etf.Atom(h.Conn.Name()) })
		var names []string
		for _, name := range found[:min(len(found), shown)] {
			names = append(names, brief(name))
		}
		if len(found) > shown {
			names = append(names, "...")
		}
		switch {
		case len(found) > 0:
			fmt.Fprintf(w, "found: %d %s: %s\n", len(found), what, escape.Text(strings.Join(names, ", ")))
		case i == 0:
			fmt.Fprintln(w, "found: no node connected")
		}
	}
	fmt.Fprintln(w, "found:", noMesh)
}

// noMesh describes what changes for callers that use global or pg.
const noMesh = "nodes that start later do not meet through this node: connect those that use global or pg to each other"

// read gets the worker and the settings from the original.
func (h *Handover) read(ctx context.Context) error {
	status, err := h.apply(ctx, "", "sys", "get_status", etf.Atom("flake"))
	if err != nil {
		return fmt.Errorf("it has no server named flake that reports its state (%w); "+
			"is it a node of boundary/flake?", err)
	}
	if h.last, h.Worker, err = stateOf(status); err != nil {
		return err
	}
	s := &h.settings
	s.WorkerID, _ = net.ParseMAC(h.Worker.String()) // never fails
	s.Taken = append(s.Taken, "running: worker id "+h.Worker.String())
	for _, application := range []etf.Atom{"flake", "kernel"} {
		env, err := h.apply(ctx, "", "application", "get_all_env", application)
		if err != nil {
			return err
		}
		pairs, _ := etf.Elements(env)
		s.TakeEnv("running", string(application), etf.List(slices.DeleteFunc(pairs, func(pair etf.Term) bool {
			return application == "kernel" && !isDistribution(pair)
		})))
	}
	return nil
}

// isDistribution reports whether pair, a key of kernel and its value, configures the distribution.
// Most other keys just have their defaults.
func isDistribution(pair etf.Term) bool {
	t, ok := pair.(etf.Tuple)
	if !ok || len(t) != 2 {
		return false
	}
	key, _ := t[0].(etf.Atom)
	return strings.HasPrefix(string(key), "inet_dist_") || key == "net_ticktime"
}

// stateOf reads the state of the original's server, the record
// {state, MaxTime, WorkerId, Sequence}, from what sys:get_status returns.
func stateOf(status etf.Term) (last time.Time, w flake.Worker, err error) {
	state, found := find(status, "State")
	if !found {
		state = status
	}
	if t, _ := state.(etf.Tuple); len(t) == 4 && t[0] == etf.Atom("state") {
		milli, ok1 := t[1].(int64)
		worker, ok2 := t[2].(int64)
		_, ok3 := t[3].(int64)
		if ok1 && ok2 && ok3 && milli > 0 && worker >= 0 && worker <= int64(flake.MaxWorker) {
			last = time.UnixMilli(milli).UTC()
			if ahead := time.Until(last); ahead > MostAhead {
				err = fmt.Errorf("its last id is %v ahead of this machine's clock; "+
					"correct the clock, or wait until it has caught up", ahead)
			}
			return last, flake.Worker(worker), err
		}
	}
	return last, 0, fmt.Errorf("its server's state is not the original's, {state, Time, Worker, Sequence}, "+
		"but %s; stop it, and use flake import", brief(state))
}

// find returns the value of the first pair {Name, Value} in a term.
func find(in etf.Term, name etf.String) (value etf.Term, found bool) {
	parts, isTuple := in.(etf.Tuple)
	if isTuple && len(parts) == 2 && parts[0] == name {
		return parts[1], true
	}
	if !isTuple {
		parts, _ = etf.Elements(in)
	}
	for _, part := range parts {
		if value, found = find(part, name); found {
			break
		}
	}
	return value, found
}
