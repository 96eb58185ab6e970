package idserver

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// MaxGenerate bounds the ids that one call of flake_harness makes, and
// MaxGenerateBytes their bytes or digits. More raise system_limit: as terms ids
// take four times their size. For the same reason one such call is carried out at
// a time.
const (
	MaxGenerate      = 100_000
	MaxGenerateBytes = 5 << 19
)

// Surroundings are what the functions tell besides ids.
type Surroundings struct {
	// Config holds the settings by the names that the original's sys.config has.
	Config map[etf.Atom]etf.Term
	// Output takes what a function prints.
	Output io.Writer
}

// Functions are those of the original's modules, by the original's names. What
// they do otherwise stands beside them.
func (s *Server) Functions(a Surroundings) rpc.Table {
	f := functions{s, a}
	return rpc.Table{
		{Module: "flake", Function: "get_config_value", Arity: 2}:              f.getConfigValue,
		{Module: "flake", Function: "start", Arity: 0}:                         start,
		{Module: "flake", Function: "stop", Arity: 0}:                          stop,
		{Module: "flake_sup", Function: "upgrade", Arity: 0}:                   upgrade,
		{Module: "persistent_timer", Function: "get_last_timestamp", Arity: 0}: f.getLastTimestamp,
		{Module: "flake_server", Function: "id", Arity: 0}:                     f.id,
		{Module: "flake_server", Function: "id", Arity: 1}:                     f.id,
		{Module: "flake_harness", Function: "generate", Arity: 1}:              f.generate,
		{Module: "flake_harness", Function: "generate", Arity: 2}:              f.generate,
		{Module: "flake_harness", Function: "timed_generate", Arity: 1}:        f.timedGenerate,
		{Module: "flake_harness", Function: "timed_generate", Arity: 2}:        f.timedGenerate,
		{Module: "flake_util", Function: "as_list", Arity: 2}:                  asList,
		{Module: "flake_util", Function: "gen_id", Arity: 3}:                   genID,
		{Module: "flake_util", Function: "hw_addr_to_int", Arity: 1}:           hwAddrToInt,
		{Module: "flake_util", Function: "curr_time_millis", Arity: 0}:         currTimeMillis,
		{Module: "flake_util", Function: "get_default_if", Arity: 0}:           getDefaultIf,
		{Module: "flake_util", Function: "get_if_hw_int", Arity: 1}:            getIfHwInt,
		{Module: "application", Function: "get_env", Arity: 2}:                 f.getEnv,
		{Module: "application", Function: "which_applications", Arity: 0}:      f.whichApplications,
		{Module: "application", Function: "which_applications", Arity: 1}:      f.whichApplications,
	}
}

type functions struct {
	*Server
	Surroundings
}

// getConfigValue returns a setting, or the default that the caller names.
func (f functions) getConfigValue(args []etf.Term) (etf.Term, error) {
	key, _ := args[0].(etf.Atom)
	if value := f.Config[key]; value != nil {
		return value, nil
	}
	return args[1], nil
}

// getEnv returns {ok, Value} for a setting of the application flake, else undefined.
func (f functions) getEnv(args []etf.Term) (etf.Term, error) {
	key, _ := args[1].(etf.Atom)
	if value := f.Config[key]; value != nil && args[0] == etf.Atom("flake") {
		return etf.Tuple{etf.Atom("ok"), value}, nil
	}
	return etf.Atom("undefined"), nil
}

// start is application:start of what has been started.
func start([]etf.Term) (etf.Term, error) {
	return etf.Tuple{etf.Atom("error"), etf.Tuple{etf.Atom("already_started"), etf.Atom("flake")}}, nil
}

// stop refuses, as supervisors do to stop their children: nobody ends the service
// from afar.
func stop([]etf.Term) (etf.Term, error) {
	return etf.Tuple{etf.Atom("error"), etf.Atom("not_supported")}, nil
}

// upgrade starts the processes that are missing: none is.
func upgrade([]etf.Term) (etf.Term, error) { return etf.Atom("ok"), nil }

// getLastTimestamp is gen_server:call(persistent_timer, get_last_timestamp).
func (f functions) getLastTimestamp([]etf.Term) (etf.Term, error) {
	saved, _ := f.IDs.LastSaved()
	return etf.Tuple{etf.Atom("ok"), saved.UnixMilli()}, nil
}

// whichApplications lists the one application there is. The argument is a time-out.
func (f functions) whichApplications([]etf.Term) (etf.Term, error) {
	return etf.List{etf.Tuple{etf.Atom("flake"), etf.String("flake"), etf.String(f.Version)}}, nil
}

// id is gen_server:call(flake, get) and gen_server:call(flake, {get, Base}).
func (f functions) id(args []etf.Term) (etf.Term, error) {
	base := Octets
	if len(args) == 1 {
		if base = baseOf(args[0]); base == noBase {
			f.count(opInvalid, ErrBadArgument)
			return failed(ErrBadArgument), nil
		}
	}
	id, err := f.Get(context.Background())
	if err != nil {
		return failed(err), nil
	}
	text := AppendID(nil, f.IDs.Format(), id, base)
	if base == Octets {
		return etf.Tuple{etf.Atom("ok"), text}, nil
	}
	return etf.Tuple{etf.Atom("ok"), etf.String(text)}, nil
}

func failed(err error) etf.Tuple { return etf.Tuple{etf.Atom("error"), results[resultOf(err)]} }

// baseOf is readBase of a term.
func baseOf(t etf.Term) int {
	if base, _ := t.(int64); base >= flake.MinBase && base <= flake.MaxBase {
		return int(base)
	}
	if t == etf.Atom("canonical") {
		return Canonical
	}
	return noBase
}

// generate returns a list of ids, the newest first. The original's does not end
// for a negative count, and takes any other.
func (f functions) generate(args []etf.Term) (etf.Term, error) {
	count, ok := args[0].(int64)
	if !ok || count < 0 {
		return nil, rpc.BadArgument()
	}
	width, base := int64(len(flake.ID{})), int64(0)
	if len(args) == 2 {
		if base, _ = args[1].(int64); base < flake.MinBase || base > flake.MaxBase {
			return nil, rpc.BadArgument()
		}
		width = int64(flake.Width(int(base)))
	}
	if count > MaxGenerate || count*width > MaxGenerateBytes {
		return nil, &rpc.Exception{Class: rpc.Error, Reason: etf.Atom("system_limit")}
	}
	if count == 0 {
		return etf.Encoded(etf.AppendNil(nil)), nil
	}
	f.generating.Lock()
	defer f.generating.Unlock()
	t := f.TurnOfNode(int(count))
	defer t.End() // when the list is made
	runs, err := f.take(context.Background(), opGetMany, int(count), MaxGenerate, t)
	if err != nil {
		return nil, &rpc.Exception{Class: rpc.Error, Reason: etf.Tuple{etf.Atom("badmatch"), failed(err)}}
	}
	return newestFirst(terms{format: f.IDs.Format(), base: int(base)}, runs, int(count), int(width)), nil
}

// newestFirst encodes the ids of runs as a list, the last one first.
func newestFirst(t terms, runs []Run, count, width int) etf.Encoded {
	const head = 5 // bytes of a binary, and of a list, besides its contents
	t.dst = make([]byte, 0, head+count*(head+width)+1)
	t.list(count)
	for _, run := range slices.Backward(runs) {
		for i := run.Count - 1; i >= 0; i-- {
			t.id(run.First.Plus(i))
		}
	}
	t.end()
	return t.dst
}

// timedGenerate is generate, and prints how long it took.
func (f functions) timedGenerate(args []etf.Term) (etf.Term, error) {
	start := time.Now()
	list, err := f.generate(args)
	if err == nil {
		fmt.Fprintf(f.Output, "generating ids: %.3f s\n", time.Since(start).Seconds())
	}
	return list, err
}
