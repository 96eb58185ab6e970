%% @private
%% Lets processes that call for one id at the same moment share a request.
%%
%% The first caller asks a node itself. Until it has its answer, others send their calls to the
%% client's process, which makes one request for all that call at that moment. It does not wait
%% for the answer before it makes the next request.
-module(flake_client_sharing).

-export([open/1, take/3, ask/2, set_unknown/3]).
-export_type([sharing/0, caller/0]).

-define(MAX_SHARED, 256). % callers; a node makes as many ids without a pause
-define(PATIENCE, 20).    % microseconds; how long a request waits for processes that are ready to run

-define(BUSY, 1).                 % the word for the deadline of the caller that asks a node itself, or 0
-define(UNKNOWN(Node), 1 + Node). % the word that is 1 if the node does not know requests for several ids

-opaque sharing() :: atomics:atomics_ref().
-type caller() :: {gen_server:from(), deadline()}.
-type deadline() :: integer(). % erlang:monotonic_time(millisecond)

-spec open(Nodes :: pos_integer()) -> sharing().
open(Nodes) ->
    atomics:new(?UNKNOWN(Nodes), []).

%% --- in the caller's process

%% Returns one id. If a caller is killed while it asks a node itself, others do not take its
%% place before its deadline.
-spec take(flake_client:client(), flake_client_nodes:config(), deadline()) ->
          {ok, [flake_client_run:run(), ...]} | {error, flake_client:failure()}.
take(Client, #{order := Order, sharing := Sharing, timeout := Timeout} = Config, Deadline) ->
    Busy = atomics:get(Sharing, ?BUSY),
    Free = Busy =:= 0 orelse Busy < Deadline - Timeout,
    case Free andalso atomics:compare_exchange(Sharing, ?BUSY, Busy, Deadline) of
        ok ->
            Taken = alone(Config, Deadline),
            _ = atomics:compare_exchange(Sharing, ?BUSY, Deadline, 0),
            Taken;
        _ ->
            case atomics:get(Sharing, ?UNKNOWN(flake_client_order:current(Order))) of
                0 -> together(Client, Config, Deadline);
                1 -> alone(Config, Deadline)
            end
    end.

alone(Config, Deadline) ->
    case flake_client_nodes:ids(Config, get, Deadline) of
        {ok, Runs, _} -> {ok, Runs};
        {error, _} = Error -> Error
    end.

%% No timeout is needed, because the answer comes by the deadline.
together(Client, Config, Deadline) ->
    try gen_server:call(Client, {share, Deadline}, infinity) of
        alone -> alone(Config, Deadline);
        Taken -> Taken
    catch
        exit:_ -> alone(Config, Deadline) % the client's process ended
    end.

%% --- in the client's process

%% Makes a request for a caller and for those that call at the same moment. If there are none,
%% the caller asks a node itself.
-spec ask(caller(), flake_client_nodes:config()) -> ok.
ask(Caller, Config) ->
    case gather([Caller], 1, now_us() + ?PATIENCE) of
        [{From, _}] ->
            gen_server:reply(From, alone);
        Callers ->
            _ = proc_lib:spawn_link(fun() -> answer(lists:reverse(Callers), Config) end),
            ok
    end.

%% Callers that are ready to run when the first message arrives have not sent theirs yet.
gather(Callers, ?MAX_SHARED, _) ->
    Callers;
gather(Callers, N, Until) ->
    receive
        {'$gen_call', From, {share, Deadline}} -> gather([{From, Deadline} | Callers], N + 1, now_us() + ?PATIENCE)
    after 0 ->
        case erlang:statistics(total_run_queue_lengths) > 0 andalso now_us() < Until of
            true -> erlang:yield(), gather(Callers, N, Until);
            false -> Callers
        end
    end.

now_us() ->
    erlang:monotonic_time(microsecond).

%% --- in a process for a request

%% A caller that the request fails asks a node itself, unless its time is up.
answer(Callers, Config) ->
    Until = lists:min([Deadline || {_, Deadline} <- Callers]),
    Replies = case flake_client_nodes:ids(Config, {get_many, length(Callers)}, Until) of
                  {ok, Runs, _} -> [{ok, [Run]} || Run <- Runs];
                  {error, badarg} -> [alone || _ <- Callers];
                  Error -> [case Deadline of Until -> Error; _ -> alone end || {_, Deadline} <- Callers]
              end,
    lists:foreach(fun({{From, _}, Reply}) -> gen_server:reply(From, Reply) end, lists:zip(Callers, Replies)).

%% Records whether a node does not know requests for several ids.
-spec set_unknown(sharing(), Node :: pos_integer(), boolean()) -> ok.
set_unknown(Sharing, Node, true) -> atomics:put(Sharing, ?UNKNOWN(Node), 1);
set_unknown(Sharing, Node, false) -> atomics:put(Sharing, ?UNKNOWN(Node), 0).
