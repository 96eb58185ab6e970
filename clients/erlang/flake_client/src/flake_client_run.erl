%% @private
%% Runs of ids with consecutive sequences. A lease consists of such runs.
%%
%% The 56 bits that end with the sequence are kept as an integer. It fits in a word, so it
%% is not a bignum. Only a snowflake's sequence may have more than 16 bits, and only
%% its node knows how many. In ids of uuidv7 and ulid, worker and random bits follow the
%% sequence. These ids begin with a time of 48 bits; among ids of 16 bytes, only those
%% of flake begin with two bytes of 0.
-module(flake_client_run).

-export([from_lease/2, from_ids/2, count/1, first/1, last/1, slice/3, split/2, ids/1]).
-export_type([run/0]).

-define(TAIL, 56).

-type run() :: {Prefix :: binary(), Tail :: non_neg_integer(), Count :: pos_integer(), Rest :: binary()}.

%% Reads a node's answer to {lease, N}: N ids of one size.
-spec from_lease(pos_integer(), term()) -> {ok, [run(), ...]} | error.
from_lease(N, [{First, _} | _] = Answer) ->
    try [run(byte_size(First), Run) || Run <- Answer] of
        Runs ->
            case count(Runs) of
                N -> {ok, Runs};
                _ -> error
            end
    catch
        error:_ -> error
    end;
from_lease(_, _) ->
    error.

run(Size, {Id, Count}) when byte_size(Id) =:= Size, is_integer(Count), Count >= 1 ->
    {Head, Rest} = halves(Id),
    Start = byte_size(Head) - ?TAIL div 8,
    <<Prefix:Start/binary, Tail:?TAIL>> = Head,
    Bits = case Size of
               8 -> ?TAIL;
               _ -> 16
           end,
    true = Tail rem (1 bsl Bits) + Count =< 1 bsl Bits,
    {Prefix, Tail, Count, Rest}.

%% Reads a node's answer to a request for N ids of one size. They keep all their bits.
-spec from_ids(pos_integer(), term()) -> {ok, [run(), ...]} | error.
from_ids(N, [First | _] = Ids) ->
    try [whole(byte_size(First), Id) || Id <- Ids] of
        Runs when length(Runs) =:= N -> {ok, Runs};
        _ -> error
    catch
        error:_ -> error
    end;
from_ids(_, _) ->
    error.

whole(Size, Id) when byte_size(Id) =:= Size, Size =:= 8 orelse Size =:= 10 orelse Size =:= 16 ->
    Start = Size - ?TAIL div 8,
    <<Prefix:Start/binary, Tail:?TAIL>> = Id,
    {Prefix, Tail, 1, <<>>}.

%% Returns the part of an id that ends with the sequence, and the part after it.
halves(<<0:16, _:14/binary>> = Id) -> {Id, <<>>};
halves(<<Head:8/binary, Rest:8/binary>>) -> {Head, Rest};
halves(Id) when byte_size(Id) =:= 8; byte_size(Id) =:= 10 -> {Id, <<>>}.

-spec count(run() | [run()]) -> non_neg_integer().
count({_, _, Count, _}) -> Count;
count(Runs) -> lists:sum([Count || {_, _, Count, _} <- Runs]).

-spec first([run(), ...]) -> flake_client:id().
first([{Prefix, Tail, _, Rest} | _]) -> id(Prefix, Tail, Rest).

-spec last([run(), ...]) -> flake_client:id().
last(Runs) ->
    {Prefix, Tail, Count, Rest} = lists:last(Runs),
    id(Prefix, Tail + Count - 1, Rest).

%% Returns the N ids that follow the first From ids of the run.
-spec slice(run(), non_neg_integer(), pos_integer()) -> run().
slice({Prefix, Tail, Count, Rest}, From, N) when From + N =< Count ->
    {Prefix, Tail + From, N, Rest}.

%% Returns the first N ids, and the rest.
-spec split(pos_integer(), [run()]) -> {[run(), ...], [run()]} | short.
split(_, []) ->
    short;
split(N, [{_, _, Count, _} = Run | Rest]) when N < Count ->
    {[slice(Run, 0, N)], [slice(Run, N, Count - N) | Rest]};
split(N, [{_, _, N, _} = Run | Rest]) ->
    {[Run], Rest};
split(N, [{_, _, Count, _} = Run | Rest]) ->
    case split(N - Count, Rest) of
        {Taken, Left} -> {[Run | Taken], Left};
        short -> short
    end.

%% Returns the ids. Leased ones have new random bits if their format has any.
-spec ids([run()]) -> [flake_client:id()].
ids(Runs) ->
    [id(Prefix, I, fresh(I, Rest)) || {Prefix, Tail, Count, Rest} <- Runs, I <- lists:seq(Tail, Tail + Count - 1)].

%% If the id has the version and variant of uuidv7, only the last 14 bits are random: the two bits before
%% them may belong to the worker.
fresh(_, <<>>) -> <<>>;
fresh(I, <<2:2, Kept:48, _:14>>) when (I bsr 12) band 15 =:= 7 -> <<2:2, Kept:48, (random(14)):14>>;
fresh(_, <<Kept:48, _:16>>) -> <<Kept:48, (random(16)):16>>.

random(Bits) -> rand:uniform(1 bsl Bits) - 1.

%% With an explicit size, Erlang copies the prefix. Otherwise it would leave room to append to it.
id(Prefix, Tail, Rest) ->
    Size = byte_size(Prefix),
    <<Prefix:Size/binary, Tail:?TAIL, Rest/binary>>.
