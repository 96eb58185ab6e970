%% The baseline: a gen_server that makes ids as the original does.
-module(bench_server).
-behaviour(gen_server).
-export([start/0, init/1, handle_call/3, handle_cast/2]).

-define(WORKER, 16#020000000001).

start() -> {ok, _} = gen_server:start({local, flake}, ?MODULE, [], []).

init([]) -> {ok, {now_ms(), 0}}.

handle_call(get, _From, State) ->
    {Id, New} = next(State),
    {reply, {ok, Id}, New};
handle_call({get, Base}, _From, State) ->
    {<<Number:128>>, New} = next(State),
    {reply, {ok, digits(Number, Base, [])}, New}.

handle_cast(_, State) -> {noreply, State}.

next({Last, Sequence}) ->
    Now = now_ms(),
    New = {Time, Next} =
        if
            Now > Last -> {Now, 0};
            Now =:= Last -> {Now, Sequence + 1}
        end,
    {<<Time:64, ?WORKER:48, Next:16>>, New}.

now_ms() -> os:system_time(millisecond).

digits(N, Base, Text) when N < Base -> [digit(N) | Text];
digits(N, Base, Text) -> digits(N div Base, Base, [digit(N rem Base) | Text]).

digit(D) when D < 10 -> $0 + D;
digit(D) when D < 36 -> $A + D - 10;
digit(D) -> $a + D - 36.
