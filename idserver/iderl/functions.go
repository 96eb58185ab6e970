package iderl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// MaxGenerate bounds the ids that one call of flake_harness makes, and
// MaxGenerateBytes their bytes or digits. More raise system_limit: as terms, ids take
// four times their size. For the same reason only one such call runs at a time.
const (
	MaxGenerate      = 100_000
	MaxGenerateBytes = 5 << 19
)

// Surroundings are what the functions report besides ids.
type Surroundings struct {
	// Config holds the settings under the names of the original's sys.config.
	Config map[etf.Atom]etf.Term
	// Output receives what a function prints.
	Output io.Writer
}

// Functions returns those of the original's modules, by the original's names. Comments
// beside them say what they do otherwise.
func Functions(s *idserver.Server, a Surroundings) rpc.Table {
	f := &functions{server: s, Surroundings: a}
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
	server *idserver.Server
	Surroundings
	generating sync.Mutex // held by a call of flake_harness
}

// getConfigValue returns a setting, or the default that the caller names.
func (f *functions) getConfigValue(args []etf.Term) (etf.Term, error) {
	key, _ := args[0].(etf.Atom)
	if value := f.Config[key]; value != nil {
		return value, nil
	}
	return args[1], nil
}

// getEnv returns {ok, Value} for a setting of the application flake, else undefined.
func (f *functions) getEnv(args []etf.Term) (etf.Term, error) {
	key, _ := args[1].(etf.Atom)
	if value := f.Config[key]; value != nil && args[0] == etf.Atom("flake") {
		return etf.Tuple{etf.Atom("ok"), value}, nil
	}
	return etf.Atom("undefined"), nil
}

// start is application:start of an application that is already running.
func start([]etf.Term) (etf.Term, error) {
	return etf.Tuple{etf.Atom("error"), etf.Tuple{etf.Atom("already_started"), etf.Atom("flake")}}, nil
}

// stop refuses, as supervisors refuse to stop their children: nobody ends the service
// remotely.
func stop([]etf.Term) (etf.Term, error) {
	return etf.Tuple{etf.Atom("error"), etf.Atom("not_supported")}, nil
}

// upgrade starts missing processes: there are none.
func upgrade([]etf.Term) (etf.Term, error) { return etf.Atom("ok"), nil }

// getLastTimestamp is gen_server:call(persistent_timer, get_last_timestamp).
func (f *functions) getLastTimestamp([]etf.Term) (etf.Term, error) {
	saved, _ := f.server.IDs.LastSaved()
	return etf.Tuple{etf.Atom("ok"), saved.UnixMilli()}, nil
}

// whichApplications lists the one application. The argument is a timeout.
func (f *functions) whichApplications([]etf.Term) (etf.Term, error) {
	return etf.List{etf.Tuple{etf.Atom("flake"), etf.String("flake"), etf.String(f.server.Version)}}, nil
}

// id is gen_server:call(flake, get) and gen_server:call(flake, {get, Base}).
func (f *functions) id(args []etf.Term) (etf.Term, error) {
	base, ok := formats.Octets, true
	if len(args) > 0 {
		if name, named := args[0].(etf.Atom); named {
			base, ok = formats.BaseOf(string(name))
		} else {
			base, ok = digitsOf(args[0])
		}
	}
	if !ok || !f.server.IDs.Format().HasBase(base) {
		return failed(f.server.Invalid()), nil
	}
	id, err := f.server.Get(context.Background())
	if err != nil {
		return failed(err), nil
	}
	text := f.server.IDs.Format().Append(nil, id, base)
	if base == formats.Octets {
		return etf.Tuple{etf.Atom("ok"), text}, nil
	}
	return etf.Tuple{etf.Atom("ok"), etf.String(text)}, nil
}

func failed(err error) etf.Tuple { return etf.Tuple{etf.Atom("error"), etf.Atom(idserver.Reason(err))} }

// digitsOf is digits of a term; only an integer has them.
func digitsOf(t etf.Term) (base int, ok bool) {
	n, _ := t.(int64)
	return digits(n)
}

// generate returns a list of ids, newest first. The original never ends for a negative
// count, and accepts any other.
func (f *functions) generate(args []etf.Term) (etf.Term, error) {
	count, ok := args[0].(int64)
	if !ok || count < 0 {
		return nil, rpc.BadArgument()
	}
	base := formats.Octets
	if len(args) == 2 {
		if base, ok = digitsOf(args[1]); !ok {
			return nil, rpc.BadArgument()
		}
	}
	format := f.server.IDs.Format()
	width := format.Width(base)
	if count > MaxGenerate || int(count)*width > MaxGenerateBytes {
		return nil, &rpc.Exception{Class: rpc.Error, Reason: etf.Atom("system_limit")}
	}
	if count == 0 {
		return etf.Encoded(etf.AppendNil(nil)), nil
	}
	f.generating.Lock()
	defer f.generating.Unlock()
	turn := f.server.TurnOfNode(int(count))
	defer turn.End() // once the list is made
	// Not GetMany, which is for fewer.
	runs, err := f.server.Lease(context.Background(), int(count), idserver.Meta{}, turn)
	if err != nil {
		return nil, &rpc.Exception{Class: rpc.Error, Reason: etf.Tuple{etf.Atom("badmatch"), failed(err)}}
	}
	return newestFirst(terms{format: format, base: base}, runs, int(count), width), nil
}

// newestFirst encodes the ids of runs as a list, the last first.
func newestFirst(t terms, runs []formats.Run, count, width int) etf.Encoded {
	const head = 5 // bytes of a binary and of a list besides their contents
	t.dst = make([]byte, 0, head+count*(head+width)+1)
	t.list(count)
	for _, run := range slices.Backward(runs) {
		for i := run.Count - 1; i >= 0; i-- {
			t.id(run.At(i))
		}
	}
	t.end()
	return t.dst
}

// timedGenerate is generate, and prints how long it took.
func (f *functions) timedGenerate(args []etf.Term) (etf.Term, error) {
	start := time.Now()
	list, err := f.generate(args)
	if err == nil {
		fmt.Fprintf(f.Output, "generating ids: %.3f s\n", time.Since(start).Seconds())
	}
	return list, err
}
