%% @private
%% Stands in for a node, under the name `in_process', in tests that have none. It makes
%% ids of the format flake in the caller's process, with a random worker id. One word keeps
%% the time and sequence of the last id. When the ids of a millisecond are used up, it
%% continues with the ids of the next millisecond.
-module(flake_client_in_process).

-export([open/0, call/2]).
-export_type([generator/0]).

-include("flake_client.hrl").

-opaque generator() :: {Last :: atomics:atomics_ref(), Worker :: non_neg_integer()}.

-spec open() -> generator().
open() ->
    %% A locally administered address, which no interface has.
    {atomics:new(1, [{signed, false}]), 16#020000000000 + rand:uniform(1 bsl 40) - 1}.

%% Answers a call as a node's generator does.
-spec call(generator(), Request :: term()) -> {ok, term()} | {error, badarg}.
call(Generator, get) ->
    [{Id, 1}] = reserve(Generator, 1),
    {ok, Id};
call(Generator, {lease, N}) when is_integer(N), N >= 1, N =< ?MAX_LEASE ->
    {ok, reserve(Generator, N)};
call(_, {notional, Ms}) when is_integer(Ms), Ms >= 0, Ms < 1 bsl 64 ->
    {ok, <<Ms:64, 0:64>>};
call(_, {notional, From, To}) when is_integer(From), is_integer(To), From >= 0, From =< To, To < 1 bsl 64 ->
    {ok, {<<From:64, 0:64>>, <<To:64, -1:64>>}};
call(_, {decompose, <<Ms:64, Worker:48, Sequence:16>>}) ->
    {ok, [{time, Ms}, {worker, Worker}, {sequence, Sequence}]};
call(Generator, {decompose, Text}) ->
    call(Generator, {decompose, Text, canonical});
call(Generator, {decompose, Text, Base}) ->
    case flake_client_text:decode(Text, Base, 16) of
        {ok, Id} -> call(Generator, {decompose, Id});
        error -> {error, badarg}
    end;
call(_, _) ->
    {error, badarg}.

reserve({Last, Worker} = Generator, N) ->
    Old = atomics:get(Last, 1),
    First = max(Old + 1, os:system_time(millisecond) bsl 16),
    case atomics:compare_exchange(Last, 1, Old, First + N - 1) of
        ok -> runs(First, N, Worker);
        _ -> reserve(Generator, N)
    end.

%% All ids of a run have the same millisecond.
runs(_, 0, _) ->
    [];
runs(First, N, Worker) ->
    Count = min(N, 16#10000 - First band 16#FFFF),
    [{<<(First bsr 16):64, Worker:48, First:16>>, Count} | runs(First + Count, N - Count, Worker)].
