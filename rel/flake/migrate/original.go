package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/remote"
)

func (h *Handover) apply(ctx context.Context, module, function etf.Atom, args ...etf.Term) (etf.Term, error) {
	result, err := h.Conn.Apply(ctx, module, function, args)
	if err != nil {
		return nil, err
	}
	if reason, failed := remote.BadRPC(result); failed {
		return nil, fmt.Errorf("%s:%s/%d: %s", module, function, len(args), brief(reason))
	}
	return result, nil
}

// brief returns a term from the original as short text for an error.
func brief(t etf.Term) string { return fmt.Sprintf("%.300s", etf.Format(nil, t)) }

// tagged calls a function of the original that returns a tagged tuple, and returns what follows the tag.
func (h *Handover) tagged(ctx context.Context, tag, module, function etf.Atom, args ...etf.Term) (etf.Term, error) {
	result, err := h.apply(ctx, module, function, args...)
	if err != nil {
		return nil, err
	}
	if t, ok := result.(etf.Tuple); ok && len(t) > 1 && t[0] == tag {
		return t[1], nil
	}
	return nil, fmt.Errorf("%s:%s/%d: %s", module, function, len(args), brief(result))
}

// parse has the original parse a text, and returns the result.
func (h *Handover) parse(ctx context.Context, text string) (etf.Term, error) {
	tokens, err := h.tagged(ctx, "ok", "erl_scan", "string", etf.String(text))
	if err != nil {
		return nil, err
	}
	return h.tagged(ctx, "ok", "erl_parse", "parse_exprs", tokens)
}

func (h *Handover) eval(ctx context.Context, expressions etf.Term, bindings ...etf.Term) (etf.Term, error) {
	return h.tagged(ctx, "value", "erl_eval", "exprs", expressions, etf.List(bindings))
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

// tellUse prints what other nodes use the original for. It does not fail if the original cannot be queried.
func (h *Handover) tellUse(ctx context.Context, w io.Writer) {
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
		fmt.Fprintln(w, "found: who uses the original is unknown:", escape.Text(err.Error()))
		return
	}
	for i, what := range []string{"connected", "connected as hidden", "named, and lost with the original",
		"names of global", "groups of pg"} {
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
	status, err := h.apply(ctx, "sys", "get_status", etf.Atom("flake"))
	if err != nil {
		return fmt.Errorf("it has no server flake that reports its state (%w); "+
			"is this the original's node?", err)
	}
	if h.last, h.Worker, err = stateOf(status); err != nil {
		return err
	}
	s := &h.settings
	s.WorkerID, _ = net.ParseMAC(h.Worker.String()) // never fails
	s.Taken = append(s.Taken, "running: worker id "+h.Worker.String())
	for _, application := range []etf.Atom{"flake", "kernel"} {
		env, err := h.apply(ctx, "application", "get_all_env", application)
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
					"set the clock right, or wait until it has caught up", ahead)
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
