%% @private
%% Runs of ids that follow one another by sequence, as a lease gives them.
%%
%% The last 56 bits of an id are kept as an integer, which is a word and not a
%% bignum; no sequence is so long as to carry out of them.
-module(flake_client_run).

-export([from_lease/1, single/1, count/1, first/1, last/1, slice/3, split/2, ids/1]).
-export_type([run/0]).

-define(TAIL, 56).

-type run() :: {Prefix :: binary(), Tail :: non_neg_integer(), Count :: pos_integer()}.

%% What a node answers to {lease, N}.
-spec from_lease(term()) -> {ok, [run(), ...]} | error.
from_lease([_ | _] = Runs) ->
    try {ok, [run(First, Count) || {First, Count} <- proper(Runs)]}
    catch error:_ -> error
    end;
from_lease(_) ->
    error.

%% What a node answers to get.
-spec single(term()) -> {ok, [run(), ...]} | error.
single(Id) ->
    from_lease([{Id, 1}]).

proper(Runs) ->
    true = lists:all(fun({_, _}) -> true; (_) -> false end, Runs),
    Runs.

run(First, Count) when byte_size(First) >= ?TAIL div 8, is_integer(Count), Count >= 1 ->
    Size = byte_size(First) - ?TAIL div 8,
    <<Prefix:Size/binary, Tail:?TAIL>> = First,
    true = Tail + Count =< 1 bsl ?TAIL,
    {Prefix, Tail, Count}.

-spec count(run() | [run()]) -> non_neg_integer().
count({_, _, Count}) -> Count;
count(Runs) -> lists:sum([Count || {_, _, Count} <- Runs]).

-spec first([run(), ...]) -> flake_client:id().
first([{Prefix, Tail, _} | _]) -> id(Prefix, Tail).

-spec last([run(), ...]) -> flake_client:id().
last(Runs) ->
    {Prefix, Tail, Count} = lists:last(Runs),
    id(Prefix, Tail + Count - 1).

%% N ids of the run, after the first From.
-spec slice(run(), non_neg_integer(), pos_integer()) -> run().
slice({Prefix, Tail, Count}, From, N) when From + N =< Count ->
    {Prefix, Tail + From, N}.

%% The first N ids, and those after them.
-spec split(pos_integer(), [run()]) -> {[run(), ...], [run()]} | short.
split(_, []) ->
    short;
split(N, [{_, _, Count} = Run | Rest]) when N < Count ->
    {[slice(Run, 0, N)], [slice(Run, N, Count - N) | Rest]};
split(N, [{_, _, N} = Run | Rest]) ->
    {[Run], Rest};
split(N, [{_, _, Count} = Run | Rest]) ->
    case split(N - Count, Rest) of
        {Taken, Left} -> {[Run | Taken], Left};
        short -> short
    end.

-spec ids([run()]) -> [flake_client:id()].
ids(Runs) ->
    [id(Prefix, I) || {Prefix, Tail, Count} <- Runs, I <- lists:seq(Tail, Tail + Count - 1)].

%% With its size the prefix is copied; without, room to append to it would be made.
id(Prefix, Tail) ->
    Size = byte_size(Prefix),
    <<Prefix:Size/binary, Tail:?TAIL>>.
