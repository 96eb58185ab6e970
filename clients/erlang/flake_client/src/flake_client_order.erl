%% @private
%% Remembers how high the ids of a client are. The client refuses ids from another node if
%% they are not above these.
%%
%% The ids of one node increase, but the clocks of two nodes differ. So a client
%% remembers, in one word, the leading bits of the highest id that it got, and the
%% node that the id came from:
%%
%%     +------------------------------------+------------------+
%%     | the id's leading 48 bits of time   | node; 0: several |
%%     +------------------------------------+------------------+
%%
%% A call reads the word before it asks a node. It accepts an id whose leading bits are
%% greater than those in the word, or equal to them if the same node made both. After it has
%% refused an id, it can ask again and accept a later one.
%%
%% The word exists as long as the Erlang node runs, so that the order holds across
%% restarts of the client.
-module(flake_client_order).

-export([open/1, mark/1, admits/3, raise/3, current/1, move/3]).
-export_type([order/0, mark/0]).

-define(HIGHEST, 1).
-define(CURRENT, 2).
-define(SEVERAL, 0).

-opaque order() :: atomics:atomics_ref().
-opaque mark() :: non_neg_integer().
-type index() :: pos_integer(). % the position of a node in the client's list

%% Returns the order of a client. It may exist from an earlier start with other nodes.
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

%% Returns the word for the highest id.
-spec mark(order()) -> mark().
mark(Order) ->
    atomics:get(Order, ?HIGHEST).

%% Reports whether a node's id is above all ids returned before the mark was read.
-spec admits(mark(), index(), flake_client:id()) -> boolean().
admits(Mark, Node, Id) ->
    Bits = leading(Id),
    Bits > bits(Mark) orelse (Bits =:= bits(Mark) andalso node_of(Mark) =:= Node).

%% Records an id from a node.
-spec raise(order(), index(), flake_client:id()) -> ok.
raise(Order, Node, Id) ->
    raise_to(Order, leading(Id), Node).

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

%% Returns the node to ask first.
-spec current(order()) -> index().
current(Order) ->
    atomics:get(Order, ?CURRENT).

%% Changes the node to ask first. Returns false if another call has changed it.
-spec move(order(), index(), index()) -> boolean().
move(Order, From, To) ->
    atomics:compare_exchange(Order, ?CURRENT, From, To) =:= ok.

bits(Mark) -> Mark bsr 16.
node_of(Mark) -> Mark band 16#FFFF.

%% flake's time has 64 bits, and the highest 16 stay 0 for thousands of years. Ids of the
%% other formats begin with a time of about 40 or 48 bits.
leading(<<0:16, Bits:48, _:64>>) -> Bits;
leading(<<Bits:48, _/binary>>) -> Bits.
