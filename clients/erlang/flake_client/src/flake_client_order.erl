%% @private
%% How far the ids of a client have come, so that none of another node's is
%% handed out that is not above them.
%%
%% One node's ids increase by themselves; the clocks of two differ. So a client
%% remembers, in one word, the leading bits of the highest id it was given, and
%% the node that gave it:
%%
%%     +------------------------------------+------------------+
%%     | the id's leading 48 bits of time   | node, 0: several |
%%     +------------------------------------+------------------+
%%
%% A call reads the word before it asks, and takes an id that has higher bits, or
%% the same bits from that very node. What is refused, later ids will pass.
%%
%% The word lives as long as the Erlang node, so that the order holds when a
%% client is restarted.
-module(flake_client_order).

-export([open/1, mark/1, admits/3, raise/3, same_worker/3, current/1, move/3]).
-deprecated({same_worker, 3}).
-export_type([order/0, mark/0]).

-define(HIGHEST, 1).
-define(CURRENT, 2).
-define(SEVERAL, 0).

-opaque order() :: atomics:atomics_ref().
-opaque mark() :: non_neg_integer().
-type index() :: pos_integer(). % of a node among those of the client

%% The order of a client, which may have been there before, with other nodes.
-spec open(flake_client:client()) -> order().
open(Client) ->
    case persistent_term:get({?MODULE, Client}, undefined) of
        undefined ->
            Order = atomics:new(?CURRENT, [{signed, false}]),
            ok = atomics:put(Order, ?CURRENT, 1),
            ok = persistent_term:put({?MODULE, Client}, Order),
            Order;
        Order ->
            ok = atomics:put(Order, ?CURRENT, 1),
            ok = raise_to(Order, bits(mark(Order)), ?SEVERAL),
            Order
    end.

%% How far the ids have come.
-spec mark(order()) -> mark().
mark(Order) ->
    atomics:get(Order, ?HIGHEST).

%% Whether an id of a node is above all that were given before the mark was read.
-spec admits(mark(), index(), flake_client:id()) -> boolean().
admits(Mark, Node, Id) ->
    Bits = leading(Id),
    Bits > bits(Mark) orelse (Bits =:= bits(Mark) andalso node_of(Mark) =:= Node).

%% Notes an id that a node gave.
-spec raise(order(), index(), flake_client:id()) -> ok.
raise(Order, Node, Id) ->
    raise_to(Order, leading(Id), Node).

%% Nothing compares the workers of nodes: no other node is known to have that of this one.
-spec same_worker(order(), index(), fun((flake_client:id()) -> term())) -> [index()].
same_worker(_, _, _) ->
    [].

raise_to(Order, Bits, Node) ->
    Old = mark(Order),
    case {bits(Old), node_of(Old)} of
        {Higher, _} when Higher > Bits -> ok;
        {Bits, Node} -> ok;
        {Bits, _} -> swap(Order, Old, Bits, ?SEVERAL);
        {_, _} -> swap(Order, Old, Bits, Node)
    end.

swap(Order, Old, Bits, Node) ->
    case atomics:compare_exchange(Order, ?HIGHEST, Old, Bits bsl 16 bor Node) of
        ok -> ok;
        _ -> raise_to(Order, Bits, Node)
    end.

%% The node that is asked first.
-spec current(order()) -> index().
current(Order) ->
    atomics:get(Order, ?CURRENT).

%% Asks another first from now on; false if another call has changed that.
-spec move(order(), index(), index()) -> boolean().
move(Order, From, To) ->
    atomics:compare_exchange(Order, ?CURRENT, From, To) =:= ok.

bits(Mark) -> Mark bsr 16.
node_of(Mark) -> Mark band 16#FFFF.

%% flake's time has 64 bits, of which the highest are 0 for ages; the other formats
%% begin with a time of about 40 or 48 bits.
leading(<<0:16, Bits:48, _:64>>) -> Bits;
leading(<<Bits:48, _/binary>>) -> Bits.
