package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
	"github.com/flake-go/flake/rel/flake/migrate"
)

// liar is a node that answers as the original does, except at one step.
type liar struct {
	*node.Node
	epmd   *epmd.Server
	port   string // of epmd
	mark   string // the file of marks of the node that takes over
	worker flake.Worker
	ahead  time.Duration // how far its last id is ahead of the clock
	last   int64         // the time of its last id, as it reported it, in ms

	released atomic.Bool // its server was resumed
}

// startLiar starts a liar, which answers with the result of lie at the step.
func startLiar(t *testing.T, step string, lie func(l *liar) (etf.Term, error)) *liar {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	l := &liar{epmd: epmd.NewServer(log), mark: filepath.Join(t.TempDir(), "timestamp"), worker: flake.RandomWorker()}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.epmd.Serve(at)
	_, l.port, _ = net.SplitHostPort(at.Addr().String())
	port, _ := strconv.Atoi(l.port)
	l.Node, err = node.Start(t.Context(), node.Options{Name: nodeName, Cookie: cookie, Log: log,
		Keeper: &epmd.Keeper{Port: uint16(port), Log: log}, Functions: rpc.Table{
			{Module: "sys", Function: "get_status", Arity: 1}: func([]etf.Term) (etf.Term, error) {
				if step == "status" {
					return lie(l)
				}
				return l.status(l.state()), nil
			},
			{Module: "application", Function: "get_all_env", Arity: 1}: func([]etf.Term) (etf.Term,
				error) {
				return etf.List{}, nil
			},
			{Module: "erl_scan", Function: "string", Arity: 1}: func(args []etf.Term) (etf.Term, error) {
				return etf.Tuple{etf.Atom("ok"), args[0], int64(1)}, nil
			},
			{Module: "erl_parse", Function: "parse_exprs", Arity: 1}: func(args []etf.Term) (etf.Term, error) {
				if text, _ := args[0].(etf.String); step == "parse" && strings.Contains(string(text), "Guard ! Order") {
					return lie(l)
				}
				return etf.Tuple{etf.Atom("ok"), args[0]}, nil
			},
			{Module: "erl_eval", Function: "exprs", Arity: 2}: func(args []etf.Term) (etf.Term, error) {
				order, _ := args[0].(etf.String)
				bindings := string(etf.Format(nil, args[1]))
				switch {
				case strings.Contains(string(order), "sys:suspend") && step == "guard",
					strings.Contains(bindings, "{'Order',halt}") && step == "halt":
					return lie(l)
				case strings.Contains(string(order), "sys:suspend"):
					return l.suspended(l.state()), nil
				case strings.Contains(bindings, "{'Order',resume}"):
					l.released.Store(true)
				}
				return evaluated(etf.Atom("done")), nil
			},
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Stop()
		l.epmd.Close()
	})
	return l
}

func (l *liar) state() etf.Tuple {
	l.last = time.Now().Add(l.ahead).UnixMilli()
	return etf.Tuple{etf.Atom("state"), l.last, int64(l.worker), int64(0)}
}

// status returns what sys:get_status returns.
func (l *liar) status(state etf.Term) etf.Term {
	data := etf.Tuple{etf.Atom("data"), etf.List{etf.Tuple{etf.String("State"), state}}}
	return etf.Tuple{etf.Atom("status"), int64(0), int64(0), etf.List{etf.List{data}}}
}

// suspended returns what the guard answers.
func (l *liar) suspended(state etf.Term) etf.Term {
	return evaluated(etf.Tuple{etf.NewPid(nodeName, 99, 0, 1), l.status(state)})
}

func evaluated(t etf.Term) etf.Term { return etf.Tuple{etf.Atom("value"), t, etf.List{}} }

// end stops the liar while a call waits for an answer.
func (l *liar) end() (etf.Term, error) {
	go l.Stop()
	return nil, errors.New("ending")
}

// take takes over from the liar, and stops the node that has taken over.
func (l *liar) take(t *testing.T) (status int, said string) {
	t.Helper()
	file := writeConfig(t, "[node]\nname = %q\ncookie = %q\n[flake]\nworker_id = %q\ntimestamp_path = %q\n",
		nodeName, cookie, l.worker, l.mark)
	t.Setenv("ERL_EPMD_PORT", l.port)
	t.Setenv("PATH", "") // so that no epmd is found
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &trigger{text: "hands out ids", then: cancel}
	status = run(ctx, []string{"takeover", "-from", nodeName, "-config", file}, out, out)
	return status, out.String()
}

// trigger is output that calls then when it contains text.
type trigger struct {
	mu   sync.Mutex
	out  bytes.Buffer
	text string
	then func()
}

func (o *trigger) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out.Write(b)
	if strings.Contains(o.out.String(), o.text) {
		o.then()
	}
	return len(b), nil
}

func (o *trigger) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.String()
}

// Whatever the original answers, a takeover ends with a clear error.
func TestTakeoverOfLiar(t *testing.T) {
	states := map[string]func(s etf.Tuple) etf.Term{
		"but surprise":   func(etf.Tuple) etf.Term { return etf.Atom("surprise") },
		"but []":         func(etf.Tuple) etf.Term { return make(etf.List, 0) },
		"but {state,":    func(s etf.Tuple) etf.Term { return append(s, int64(1)) },
		"but {state,-1,": func(s etf.Tuple) etf.Term { s[1] = int64(-1); return s },
		"but {state,0,":  func(s etf.Tuple) etf.Term { s[1] = int64(0); return s },
		"but {state,1180591620717411303424,": func(s etf.Tuple) etf.Term {
			s[1] = new(big.Int).Lsh(big.NewInt(1), 70)
			return s
		},
		"ahead of this machine's clock": func(s etf.Tuple) etf.Term { s[1] = s[1].(int64) + 3600_000; return s },
		"281474976710656,0}":            func(s etf.Tuple) etf.Term { s[2] = int64(flake.MaxWorker) + 1; return s },
	}
	for want, change := range states {
		for step, answer := range map[string]func(l *liar) etf.Term{
			"status": func(l *liar) etf.Term { return l.status(change(l.state())) },
			"guard":  func(l *liar) etf.Term { return l.suspended(change(l.state())) },
		} {
			liesAt(t, step, want, func(l *liar) (etf.Term, error) { return answer(l), nil })
		}
	}
	for _, tt := range []struct {
		step, want string
		lie        func(l *liar) (etf.Term, error)
	}{
		{"status", "LIST_EXT: more than",
			func(*liar) (etf.Term, error) { return slices.Repeat(etf.List{etf.Atom("a")}, etf.MaxElements+1), nil }},
		{"status", "is it a node of boundary/flake?", (*liar).end},
		{"parse", "flake: node " + nodeName + ": erl_parse:parse_exprs/1: odd",
			func(*liar) (etf.Term, error) { return etf.Atom("odd"), nil }},
		{"guard", "the original's server was not suspended: surprise",
			func(*liar) (etf.Term, error) { return evaluated(etf.Atom("surprise")), nil }},
		{"guard", "the original's server was not suspended: ", (*liar).end},
		{"guard", "the original's worker id has changed",
			func(l *liar) (etf.Term, error) { s := l.state(); s[2] = int64(1); return l.suspended(s), nil }},
		{"halt", "the original did not halt: surprise",
			func(*liar) (etf.Term, error) { return evaluated(etf.Atom("surprise")), nil }},
	} {
		liesAt(t, tt.step, tt.want, tt.lie)
	}
}

func liesAt(t *testing.T, step, want string, lie func(l *liar) (etf.Term, error)) {
	t.Run(step+" "+want, func(t *testing.T) {
		l := startLiar(t, step, lie)
		if status, said := l.take(t); status != exitFailure || !strings.Contains(said, want) {
			t.Errorf("exit status %d, want %d and %s\n%s", status, exitFailure, want, said)
		}
		if _, err := os.Stat(l.mark); err == nil {
			t.Error("the mark was not removed")
		}
	})
}

// The mark is raised at least to the original's last time before the original is halted, so no id repeats.
func TestTakeoverRaisesMark(t *testing.T) {
	var mark time.Time
	l := startLiar(t, "halt", func(l *liar) (_ etf.Term, err error) {
		if mark, err = flake.RaiseMark(l.mark, time.Time{}); err != nil {
			t.Error(err)
		}
		return l.end()
	})
	l.ahead = migrate.MostAhead / 2
	if status, said := l.take(t); status != 0 || mark.UnixMilli() < l.last {
		t.Errorf("exit status %d; the mark is %v, and the last time %v\n%s", status, mark, time.UnixMilli(l.last).UTC(), said)
	}
}

// If the mark cannot be raised, the original continues, and a file that another node uses stays.
func TestTakeoverWithoutMark(t *testing.T) {
	l := startLiar(t, "guard", func(l *liar) (etf.Term, error) {
		marks, err := flake.OpenMarks(l.mark, nil)
		if err == nil {
			t.Cleanup(func() { marks.Close() })
		}
		return l.suspended(l.state()), err
	})
	status, said := l.take(t)
	if status != exitFailure || !strings.Contains(said, "another node is running with it") || !l.released.Load() {
		t.Errorf("exit status %d, resumed: %t\n%s", status, l.released.Load(), said)
	}
	if _, err := os.Stat(l.mark); err != nil {
		t.Error(err)
	}
}

// An EPMD that ends with the original, because one service started both, does not stop the takeover.
func TestTakeoverWithoutEPMD(t *testing.T) {
	l := startLiar(t, "halt", func(l *liar) (etf.Term, error) {
		l.epmd.Close()
		return l.end()
	})
	if status, said := l.take(t); status != 0 || !strings.Contains(said, "own=true") {
		t.Errorf("exit status %d\n%s", status, said)
	}
}
