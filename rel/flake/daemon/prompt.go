package daemon

import (
	"github.com/flake-go/flake/node/console"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// prompt is the node's prompt. It also writes the node's output, above the line being edited.
type prompt struct {
	*console.Console
	functions rpc.Table // set once the node has started
}

// call is a console.Functions.
func (p *prompt) call(module, function etf.Atom, args []etf.Term) (etf.Term, error) {
	result, e := p.functions.Apply(module, function, args)
	if e != nil {
		return nil, &console.Exception{Class: string(e.Class), Reason: e.Reason}
	}
	if encoded, ok := result.(etf.Encoded); ok {
		return etf.Decode(encoded)
	}
	return result, nil
}

var help = []console.Section{
	{Title: "ids", Functions: []console.Help{
		{Call: "flake_server:id()", Does: "an id: {ok, <<Time:64, Worker:48, Sequence:16>>}"},
		{Call: "flake_server:id(Base)", Does: "an id as digits, in a base from 2 to 62"},
		{Call: "flake_harness:generate(N)", Does: "a list of ids, the newest first"},
		{Call: "flake_harness:generate(N,Base)", Does: "the same list, as digits"},
		{Call: "flake_harness:timed_generate(N)", Does: "such a list, and how long it took"},
		{Call: "flake_harness:timed_generate(N,Base)", Does: "the same, as digits"},
	}},
	{Title: "calls, as gen_server:call({flake,Node},Call) makes them", Functions: []console.Help{
		{Call: "gen_server:call(flake,get)", Does: "an id: {ok, Id}"},
		{Call: "gen_server:call(flake,{get_many,N})", Does: "ids: {ok, [Id]}"},
		{Call: "gen_server:call(flake,{lease,N})", Does: "runs of ids: {ok, [{First, Count}]}"},
		{Call: "gen_server:call(flake,{notional,Ms})", Does: "the lowest id of a time in ms: {ok, Id}"},
		{Call: "gen_server:call(flake,{decompose,Id})", Does: "its time, worker and sequence"},
		{Call: "gen_server:call(flake,info)", Does: "the state of the server, and its counts"},
	}},
	{Title: "parts of ids", Functions: []console.Help{
		{Call: "flake_util:as_list(I,Base)", Does: "an integer as digits"},
		{Call: "flake_util:gen_id(Time,Worker,Seq)", Does: "the id with these parts"},
		{Call: "flake_util:hw_addr_to_int(L)", Does: "the six octets of a MAC address as an integer"},
		{Call: "flake_util:curr_time_millis()", Does: "the time, in ms since 1970"},
		{Call: "flake_util:get_default_if()", Does: "the first interface with a MAC address"},
		{Call: "flake_util:get_if_hw_int(If)", Does: "{ok, Integer}: the MAC address of an interface"},
	}},
	{Title: "the node", Functions: []console.Help{
		{Call: "node()", Does: "its name"},
		{Call: "nodes()", Does: "the visible nodes that are connected"},
		{Call: "nodes(connected)", Does: "all connected nodes"},
		{Call: "registered()", Does: "the registered names"},
		{Call: "whereis(Name)", Does: "the pid of a registered process"},
		{Call: "sys:get_state(Name)", Does: "the state of a registered process"},
		{Call: "supervisor:which_children(flake_sup)", Does: "the supervised processes"},
		{Call: "memory()", Does: "the memory that the node uses"},
		{Call: "net_adm:ping(Node)", Does: "pong if the node can be reached, else pang"},
		{Call: "application:which_applications()", Does: "the running applications and their versions"},
		{Call: "flake:get_config_value(Key,Default)", Does: "a setting by the original's name"},
	}},
}
