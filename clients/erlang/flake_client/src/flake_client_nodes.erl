%% @private
%% Asks the nodes of a client, one after the other, until one answers.
-module(flake_client_nodes).

-export([ask/3, ids/3]).
-export_type([config/0]).

-include_lib("kernel/include/logger.hrl").

%% How long a call waits after a round in which all nodes failed; doubled after each round.
-define(FIRST_PAUSE, 2). % ms
-define(MAX_PAUSE, 500). % ms

%% The minimum time for checking whether nodes are listening, even past the deadline.
-define(CHECK_TIME, 50). % ms

-type config() :: #{nodes := tuple(), % of node()
                    name := atom(),
                    order := flake_client_order:order(),
                    sharing := flake_client_sharing:sharing(),
                    in_process := flake_client_in_process:generator(),
                    _ => _}.
-type deadline() :: integer(). % erlang:monotonic_time(millisecond)

%% Makes a request for something other than ids.
-spec ask(config(), Request :: term(), deadline()) -> {ok, term()} | {error, flake_client:failure()}.
ask(Config, Request, Deadline) ->
    case rounds(Config, Request, Deadline, fun(_, Answer) -> {ok, Answer} end, ?FIRST_PAUSE, []) of
        {ok, Answer, _} -> {ok, Answer};
        {error, _} = Error -> Error
    end.

%% Asks for ids that are above all ids that the client got before. Asked is the
%% erlang:monotonic_time() when the request was made, before the ids were handed out.
%% Returns badarg if the node does not know {get_many, N}.
-spec ids(config(), get | {get_many | lease, pos_integer()}, deadline()) ->
          {ok, [flake_client_run:run(), ...], Asked :: integer()} | {error, flake_client:failure()}.
ids(#{order := Order} = Config, Request, Deadline) ->
    Mark = flake_client_order:mark(Order),
    Accept = fun(Node, Answer) -> accept(runs(Request, Answer), Node, Mark, Order) end,
    rounds(Config, Request, Deadline, Accept, ?FIRST_PAUSE, []).

runs(get, Id) -> flake_client_run:from_ids(1, [Id]);
runs({get_many, N}, Answer) -> flake_client_run:from_ids(N, Answer);
runs({lease, N}, Answer) -> flake_client_run:from_lease(N, Answer).

accept(error, _, _, _) ->
    {error, unexpected_reply};
accept({ok, Runs}, Node, Mark, Order) ->
    case flake_client_order:admits(Mark, Node, flake_client_run:first(Runs)) of
        true ->
            ok = flake_client_order:raise(Order, Node, flake_client_run:last(Runs)),
            {ok, Runs};
        false ->
            {error, clock_behind}
    end.

rounds(#{nodes := Nodes, order := Order} = Config, Request, Deadline, Accept, Pause, Before) ->
    Current = flake_client_order:current(Order),
    Indexes = lists:seq(Current, tuple_size(Nodes)) ++ lists:seq(1, Current - 1),
    case round(Indexes, Config, Request, Deadline, Accept, []) of
        {ok, Index, Answer, Asked, Failed} ->
            Index =/= Current andalso moved(Config, Current, Index, Failed),
            {ok, Answer, Asked};
        {none, Failed} ->
            Reasons = [reason(F, Before) || F <- Failed],
            case lists:any(fun passes/1, Failed) andalso left(Deadline) > Pause of
                true ->
                    timer:sleep(Pause),
                    rounds(Config, Request, Deadline, Accept, min(2 * Pause, ?MAX_PAUSE), Reasons);
                false ->
                    {error, {no_node_available, check_ports(Reasons, max(Deadline, now_ms() + ?CHECK_TIME))}}
            end;
        badarg ->
            {error, badarg}
    end.

%% The last round may have been too short for an answer. After a timeout, keeps the earlier
%% reason.
reason({Node, timeout}, Before) -> {Node, proplists:get_value(Node, Before, timeout)};
reason(Failed, _) -> Failed.

%% Retrying does not help if the answer makes no sense, or if this node is not
%% distributed.
passes({_, unexpected_reply}) -> false;
passes({_, not_alive}) -> false;
passes({_, _}) -> true.

round([], _, _, _, _, Failed) ->
    {none, lists:reverse(Failed)};
round([Index | Others], #{nodes := Nodes, sharing := Sharing} = Config, Request, Deadline, Accept, Failed) ->
    Node = element(Index, Nodes),
    %% A node that does not answer uses up only its share of the time.
    Share = max(1, left(Deadline) div (1 + length(Others))),
    Asked = erlang:monotonic_time(),
    case accepted(Index, call(Node, Config, Request, Share), Accept) of
        {ok, Answer} -> {ok, Index, Answer, Asked, lists:reverse(Failed)};
        {error, Reason} when element(1, Request) =:= get_many, Reason =:= unexpected_reply orelse Reason =:= badarg ->
            ok = flake_client_sharing:set_unknown(Sharing, Index, true),
            badarg;
        {error, badarg} -> badarg;
        {error, Reason} ->
            ok = flake_client_sharing:set_unknown(Sharing, Index, false), % another process may take its place
            round(Others, Config, Request, Deadline, Accept, [{Node, Reason} | Failed])
    end.

accepted(Index, {ok, Answer}, Accept) -> Accept(Index, Answer);
accepted(_, {error, Reason}, _) when is_atom(Reason) -> {error, Reason};
accepted(_, _, _) -> {error, unexpected_reply}.

call(in_process, #{in_process := Generator}, Request, _) ->
    flake_client_in_process:call(Generator, Request);
call(Node, #{name := Name}, Request, Timeout) ->
    try is_alive() andalso gen_server:call({Name, Node}, Request, Timeout) of
        false -> {error, not_alive};
        Reply -> Reply
    catch
        exit:{{nodedown, _}, _} -> {error, nodedown};
        exit:{noconnection, _} -> {error, nodedown};
        exit:{Reason, _} when is_atom(Reason) -> {error, Reason};
        exit:_ -> {error, crashed}
    end.

%% A node that refuses the connection because it has a different cookie seems to be down,
%% but its port is open.
check_ports(Reasons, Deadline) ->
    [case Why =:= nodedown andalso listens(Node, Deadline) of
         true -> {Node, refused};
         false -> {Node, Why}
     end || {Node, Why} <- Reasons].

listens(Node, Deadline) ->
    case left(Deadline) > 0 andalso string:split(atom_to_list(Node), "@") of
        [Name, Host] ->
            case erl_epmd:port_please(Name, Host, left(Deadline)) of
                {port, Port, _} -> lists:any(fun(Family) -> connects(Host, Port, Family, Deadline) end, [inet, inet6]);
                _ -> false
            end;
        _ ->
            false
    end.

connects(Host, Port, Family, Deadline) ->
    case gen_tcp:connect(Host, Port, [Family], max(0, left(Deadline))) of
        {ok, Socket} -> gen_tcp:close(Socket) =:= ok;
        {error, _} -> false
    end.

left(Deadline) ->
    Deadline - now_ms().

now_ms() ->
    erlang:monotonic_time(millisecond).

moved(#{nodes := Nodes, order := Order, name := Name}, From, To, [Why | _]) ->
    case flake_client_order:move(Order, From, To) of
        true ->
            ?LOG_WARNING("flake_client: ids of ~p now come from ~p: ~0p", [Name, element(To, Nodes), Why]),
            ok;
        false ->
            ok
    end.
