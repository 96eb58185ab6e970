%% @private
%% Checks a client's options.
-module(flake_client_options).

-export([environment/0, check/1]).
-export_type([options/0]).

-include("flake_client.hrl").

-type options() :: #{nodes := [node(), ...],
                     name := atom(),
                     timeout := pos_integer(),
                     lease := undefined | #{size := pos_integer(), max_age := pos_integer()}}.

%% Returns the options in the application's environment.
-spec environment() -> #{atom() => term()}.
environment() ->
    maps:with([nodes, name, timeout, lease], maps:from_list(application:get_all_env(flake_client))).

%% Fills in the defaults. If options are wrong, the error names the first wrong option.
-spec check(term()) -> {ok, options()} | {error, {bad_option, Key :: term(), Value :: term(), Allowed :: string()}}.
check(Options) ->
    try {ok, with_defaults(to_map(options, Options), #{nodes => [], name => flake, timeout => 5000, lease => undefined})}
    catch throw:{bad_option, _, _, _} = Bad -> {error, Bad}
    end.

with_defaults(Given, Defaults) ->
    maps:map(fun option/2, maps:merge(Defaults, maps:map(fun(K, V) -> known(K, V, Defaults) end, Given))).

known(Key, Value, Defaults) when is_map_key(Key, Defaults) ->
    Value;
known(Key, Value, Defaults) ->
    bad(Key, Value, io_lib:format("one of the options ~0p", [maps:keys(Defaults)])).

option(nodes, Nodes) ->
    Count = count(Nodes),
    valid(nodes, Nodes, Count =:= 0 orelse lists:all(fun is_atom/1, Nodes), "nodes that are atoms, not strings"),
    valid(nodes, Nodes, Count >= 1 andalso Count =< ?MAX_NODES andalso length(lists:usort(Nodes)) =:= Count,
          io_lib:format("a list of 1 to ~b different nodes", [?MAX_NODES]));
option(name, Name) ->
    valid(name, Name, is_atom(Name), "the generator's registered name, an atom");
option(timeout, Timeout) ->
    within(timeout, Timeout, ?MAX_TIMEOUT, "milliseconds");
option(lease, undefined) ->
    undefined;
option(lease, Lease) ->
    with_defaults(to_map(lease, Lease), #{size => 1000, max_age => 100});
option(size, Size) ->
    within(size, Size, ?MAX_LEASE, "ids");
option(max_age, Age) ->
    within(max_age, Age, ?MAX_AGE, "milliseconds").

count(List) ->
    try length(List)
    catch error:badarg -> 0 % not a proper list
    end.

within(Key, Value, Max, Unit) ->
    valid(Key, Value, is_integer(Value) andalso Value >= 1 andalso Value =< Max,
          io_lib:format("1 to ~b ~s", [Max, Unit])).

valid(_, Value, true, _) -> Value;
valid(Key, Value, false, Allowed) -> bad(Key, Value, Allowed).

to_map(_, Map) when is_map(Map) ->
    Map;
to_map(Key, List) ->
    try maps:from_list(lists:reverse(List)) % if a key has two values, the first counts, as in proplists
    catch error:_ -> bad(Key, List, "a map or a list of pairs")
    end.

-spec bad(term(), term(), iodata()) -> no_return().
bad(Key, Value, Allowed) ->
    throw({bad_option, Key, Value, lists:flatten(Allowed)}).
