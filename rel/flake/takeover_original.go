package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// apply calls a function of the original.
func (h *handover) apply(ctx context.Context, module, function etf.Atom, args ...etf.Term) (etf.Term, error) {
	result, err := h.conn.Apply(ctx, module, function, args)
	if err != nil {
		return nil, err
	}
	if reason, failed := badRPC(result); failed {
		return nil, fmt.Errorf("%s:%s/%d: %s", module, function, len(args), brief(reason))
	}
	return result, nil
}

// brief is how a term of the original stands in an error.
func brief(t etf.Term) string {
	const most = 300
	text := etf.Format(nil, t)
	if len(text) > most {
		return string(text[:most]) + "..."
	}
	return string(text)
}

// parse returns what the original's parser makes of a text.
func (h *handover) parse(ctx context.Context, text string) (etf.Term, error) {
	scanned, err := h.apply(ctx, "erl_scan", "string", etf.String(text))
	if err != nil {
		return nil, err
	}
	tokens, ok := scanned.(etf.Tuple)
	if !ok || len(tokens) != 3 || tokens[0] != etf.Atom("ok") {
		return nil, fmt.Errorf("erl_scan:string/1: %s", brief(scanned))
	}
	parsed, err := h.apply(ctx, "erl_parse", "parse_exprs", tokens[1])
	if err != nil {
		return nil, err
	}
	if t, ok := parsed.(etf.Tuple); ok && len(t) == 2 && t[0] == etf.Atom("ok") {
		return t[1], nil
	}
	return nil, fmt.Errorf("erl_parse:parse_exprs/1: %s", brief(parsed))
}

// eval has the original evaluate what it has parsed, with a Guard unless that is empty.
func (h *handover) eval(ctx context.Context, expressions etf.Term, guard etf.Pid) (etf.Term, error) {
	var bindings etf.List
	if guard != "" {
		bindings = etf.List{etf.Tuple{etf.Atom("Guard"), guard}}
	}
	result, err := h.apply(ctx, "erl_eval", "exprs", expressions, bindings)
	if err != nil {
		return nil, err
	}
	if t, ok := result.(etf.Tuple); ok && len(t) == 3 && t[0] == etf.Atom("value") {
		return t[1], nil
	}
	return nil, fmt.Errorf("erl_eval:exprs/2: %s", brief(result))
}

// read reads the worker and the settings of the original.
func (h *handover) read(ctx context.Context) error {
	status, err := h.apply(ctx, "sys", "get_status", etf.Atom("flake"))
	if err != nil {
		return fmt.Errorf("it has no server flake that can be asked for its state (%w); is this the node of the original?", err)
	}
	if h.last, h.worker, err = stateOf(status); err != nil {
		return err
	}
	s := &h.settings
	s.WorkerID, _ = net.ParseMAC(h.worker.String()) // never fails
	s.Taken = append(s.Taken, "running: worker id "+h.worker.String())
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

// isDistribution reports whether a key of kernel, with its value, is about the distribution:
// most others are not set by anybody.
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
func stateOf(status etf.Term) (last uint64, w flake.Worker, err error) {
	state := status
	if t, ok := status.(etf.Tuple); ok && len(t) == 4 {
		items, _ := etf.Elements(t[3])
		for _, item := range items {
			parts, _ := etf.Elements(item)
			for _, part := range parts {
				if s := dataOf(part, "State"); s != nil {
					state = s
				}
			}
		}
	}
	t, ok := state.(etf.Tuple)
	if !ok || len(t) != 4 || t[0] != etf.Atom("state") {
		return 0, 0, unknownState(state)
	}
	milli, ok1 := t[1].(int64)
	worker, ok2 := t[2].(int64)
	_, ok3 := t[3].(int64)
	if !ok1 || !ok2 || !ok3 || milli <= 0 || worker < 0 || worker > int64(flake.MaxWorker) {
		return 0, 0, unknownState(state)
	}
	if ahead := time.Until(time.UnixMilli(milli)); ahead > mostAhead {
		return 0, 0, fmt.Errorf("its last id is of a time %v ahead of this machine's clock; "+
			"set the clock right, or wait until it has caught up", ahead)
	}
	return uint64(milli), flake.Worker(worker), nil
}

func unknownState(state etf.Term) error {
	return fmt.Errorf("the state of its server is not that of the original, {state, Time, Worker, Sequence}, but %s; import what it leaves, with flake import", brief(state))
}

// dataOf takes a value out of {data, [{Name, Value}]}.
func dataOf(t etf.Term, name etf.String) etf.Term {
	tuple, ok := t.(etf.Tuple)
	if !ok || len(tuple) != 2 || tuple[0] != etf.Atom("data") {
		return nil
	}
	pairs, _ := etf.Elements(tuple[1])
	for _, pair := range pairs {
		if p, ok := pair.(etf.Tuple); ok && len(p) == 2 && p[0] == name {
			return p[1]
		}
	}
	return nil
}
