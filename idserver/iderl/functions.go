package iderl

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// MaxGenerate limits the number of ids that one call to flake_harness makes, and MaxGenerateBytes
// limits their bytes or digits. A call for more raises system_limit. The limits are low, and only
// one such call runs at a time, because the whole list is in memory before it is sent.
const (
	MaxGenerate      = 100_000
	MaxGenerateBytes = 5 << 19
)

// Functions returns the functions of the original's modules, under their original names. config
// holds the settings by their names in the original's sys.config. What a function prints is written
// to output. The comment on each function says how it differs from the original.
func Functions(s *idserver.Server, config map[etf.Atom]etf.Term, output io.Writer) rpc.Table {
	f := &functions{server: s, config: config, output: output}
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
	server     *idserver.Server
	config     map[etf.Atom]etf.Term
	output     io.Writer
	generating sync.Mutex // held while flake_harness makes ids, so that one call at a time does
}

// getConfigValue returns a setting, or the caller's default.
func (f *functions) getConfigValue(args []etf.Term) (etf.Term, error) {
	key, _ := args[0].(etf.Atom)
	if value := f.config[key]; value != nil {
		return value, nil
	}
	return args[1], nil
}

// getEnv returns {ok, Value} for a setting of the application flake, otherwise undefined.
func (f *functions) getEnv(args []etf.Term) (etf.Term, error) {
	key, _ := args[1].(etf.Atom)
	if value := f.config[key]; value != nil && args[0] == etf.Atom("flake") {
		return ok(value), nil
	}
	return etf.Atom("undefined"), nil
}

// start answers like application:start for an application that is already running.
func start([]etf.Term) (etf.Term, error) {
	return etf.Tuple{etf.Atom("error"), etf.Tuple{etf.Atom("already_started"), etf.Atom("flake")}}, nil
}

// stop refuses, like a supervisor that is asked to stop a child: the service cannot be stopped
// remotely.
func stop([]etf.Term) (etf.Term, error) {
	return etf.Tuple{etf.Atom("error"), etf.Atom("not_supported")}, nil
}

// upgrade does nothing: the original's upgrade starts missing processes, and here no process is
// ever missing.
func upgrade([]etf.Term) (etf.Term, error) { return etf.Atom("ok"), nil }

// getLastTimestamp does what gen_server:call(persistent_timer, get_last_timestamp) does.
func (f *functions) getLastTimestamp([]etf.Term) (etf.Term, error) {
	saved, _ := f.server.IDs.LastSaved()
	return ok(saved.UnixMilli()), nil
}

// whichApplications lists the only application, flake. The argument is a timeout.
func (f *functions) whichApplications([]etf.Term) (etf.Term, error) {
	return etf.List{etf.Tuple{etf.Atom("flake"), etf.String("flake"), etf.String(f.server.Version)}}, nil
}

// id does what gen_server:call(flake, get) and gen_server:call(flake, {get, Base}) do.
func (f *functions) id(args []etf.Term) (etf.Term, error) {
	var request etf.Term = etf.Atom("get")
	if len(args) > 0 {
		request = etf.Tuple{request, args[0]}
	}
	server := genserver.Server{Handler: &Handler{Server: f.server}}
	reply, ok := server.Call(request)
	if !ok { // the request is too deep
		return failed(f.server.Count(idserver.KindInvalid, idserver.ErrBadArgument)), nil
	}
	return reply, nil
}

func ok(value etf.Term) etf.Tuple { return etf.Tuple{etf.Atom("ok"), value} }

func failed(err error) etf.Tuple { return etf.Tuple{etf.Atom("error"), etf.Atom(idserver.Reason(err))} }

// digitsOf is like digits, for a term. Only an integer can be a valid base.
func digitsOf(t etf.Term) (base int, ok bool) {
	n, _ := t.(int64)
	return digits(n)
}

// generate returns a list of ids, newest first. The original loops forever on a negative count,
// and has no upper limit.
func (f *functions) generate(args []etf.Term) (etf.Term, error) {
	count, valid := args[0].(int64)
	base := formats.Octets
	if valid && len(args) == 2 {
		base, valid = digitsOf(args[1])
	}
	if !valid || count < 0 {
		return nil, rpc.BadArgument()
	}
	t := terms{format: f.server.IDs.Format(), base: base}
	n, width := int(count), t.format.Width(base)
	if count > MaxGenerate || n*width > MaxGenerateBytes {
		return nil, systemLimit()
	}
	if count == 0 {
		return etf.Encoded(etf.AppendNil(nil)), nil
	}
	f.generating.Lock()
	defer f.generating.Unlock()
	turn := f.server.TurnOfNode(n)
	defer turn.End() // not before the list is made
	// Not KindGetMany, whose maximum is lower.
	runs, err := f.server.Take(context.Background(), idserver.KindLease, n, idserver.Meta{}, turn)
	if err != nil {
		return nil, &rpc.Exception{Class: rpc.Error, Reason: etf.Tuple{etf.Atom("badmatch"), failed(err)}}
	}
	const head = 5 // size of the header of a binary or a list
	t.dst = make([]byte, 0, head+n*(head+width)+1)
	t.list(n)
	for _, run := range slices.Backward(runs) {
		for i := run.Count - 1; i >= 0; i-- {
			t.id(run.At(i))
		}
	}
	t.end()
	return etf.Encoded(t.dst), nil
}

func systemLimit() error { return &rpc.Exception{Class: rpc.Error, Reason: etf.Atom("system_limit")} }

// timedGenerate is like generate, and prints how long it took.
func (f *functions) timedGenerate(args []etf.Term) (etf.Term, error) {
	start := time.Now()
	list, err := f.generate(args)
	if err == nil {
		fmt.Fprintf(f.output, "generating ids: %.3f s\n", time.Since(start).Seconds())
	}
	return list, err
}

// maxDigits is the maximum size, in bits, of the integer that asList accepts.
const maxDigits = 1 << 13

// asList returns the digits of an integer in a base from 2 to 62.
func asList(args []etf.Term) (etf.Term, error) {
	n, isInteger := integer(args[0])
	base, isBase := digitsOf(args[1])
	if !isInteger || !isBase {
		return nil, rpc.BadArgument()
	}
	if n.BitLen() > maxDigits {
		return nil, systemLimit()
	}
	// Package big's digits have lower-case letters before capitals; ours have capitals first.
	swap := func(r rune) rune {
		if unicode.IsLower(r) {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}
	return etf.String(strings.Map(swap, n.Text(base))), nil
}

// genID composes an id from a time, a worker and a sequence. Like an Erlang binary, it truncates
// each of them to the number of bits of its field.
func genID(args []etf.Term) (etf.Term, error) {
	var id []byte
	for i, bits := range []uint{64, 48, 16} {
		n, valid := integer(args[i])
		if !valid {
			return nil, rpc.BadArgument()
		}
		modulus := new(big.Int).Lsh(big.NewInt(1), bits)
		id = append(id, new(big.Int).Mod(n, modulus).FillBytes(make([]byte, bits/8))...)
	}
	return id, nil
}

// hwAddrToInt converts a MAC address, a list of six bytes, to an integer.
func hwAddrToInt(args []etf.Term) (etf.Term, error) {
	octets, _ := etf.Elements(args[0])
	if len(octets) != 6 {
		return nil, rpc.BadArgument()
	}
	var n int64
	for _, o := range octets {
		octet, valid := o.(int64)
		if !valid || octet < 0 || octet > 255 {
			return nil, rpc.BadArgument()
		}
		n = n<<8 | octet
	}
	return n, nil
}

// currTimeMillis returns the milliseconds since 1970-01-01 UTC.
func currTimeMillis([]etf.Term) (etf.Term, error) { return time.Now().UnixMilli(), nil }

// getDefaultIf returns the name of the first interface that has a MAC address.
func getDefaultIf([]etf.Term) (etf.Term, error) {
	_, name, err := flake.InterfaceWorker("")
	if err != nil {
		return etf.Atom("undefined"), nil
	}
	return etf.String(name), nil
}

// getIfHwInt returns the MAC address of an interface as {ok, Integer}. Without an address, it
// returns {ok, 0} for a loopback interface, and raises badarg for others, as in the original.
func getIfHwInt(args []etf.Term) (etf.Term, error) {
	name, _ := args[0].(etf.String)
	i, err := net.InterfaceByName(string(name))
	if err != nil {
		return etf.Tuple{etf.Atom("error"), etf.Atom("if_not_found")}, nil
	}
	return hwInt(i)
}

func hwInt(i *net.Interface) (etf.Term, error) {
	if len(i.HardwareAddr) == 0 && i.Flags&net.FlagLoopback != 0 {
		return ok(int64(0)), nil // package net omits an address of zeros
	}
	n, err := hwAddrToInt([]etf.Term{etf.String(i.HardwareAddr)})
	if err != nil {
		return nil, err
	}
	return ok(n), nil
}

func integer(t etf.Term) (*big.Int, bool) {
	switch n := t.(type) {
	case int64:
		return big.NewInt(n), true
	case *big.Int:
		return n, true
	}
	return nil, false
}
