%% @private
%% The process of a client. It owns a table with the client's name, in which callers
%% find these rows:
%%
%%     {config, Config}                  how to ask nodes; callers ask them directly, unless
%%                                       several processes call for one id at the same moment
%%     {lease, Taken, Run, Deadline}     the run that ids are taken from now, if any
%%
%% A caller takes ids by adding to the counter Taken, which costs neither a round trip
%% nor a message. When the run is used up or too old, the caller calls this process,
%% which puts the next run in the old one's place. Runs are put in place in ascending
%% order, and a replaced run is never used again, so ids increase in the order in which
%% callers begin to take them.
%%
%% A separate process fetches runs as soon as the last fetched run is put in place. It
%% fetches again when half of max_age has passed, if ids were taken in that time.
-module(flake_client_server).
-behaviour(gen_server).

-export([start_link/2, take/2, ask/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-include("flake_client.hrl").

-type run() :: flake_client_run:run().
-type taken() :: atomics:atomics_ref().
-type monotonic() :: integer(). % erlang:monotonic_time()
-type deadline() :: integer().  % erlang:monotonic_time(millisecond)
-type waiting() :: {gen_server:from(), N :: pos_integer(), deadline(), Since :: monotonic()}.

-record(state,
        {config :: flake_client_nodes:config(),
         current :: {taken(), run(), Deadline :: monotonic()} | undefined,
         next = [] :: [run()],                   % after current
         deadline = 0 :: monotonic(),            % when next becomes too old
         asked = erlang:monotonic_time() :: monotonic(), % when next was asked for
         above = <<>> :: binary(),               % an id that was returned without using the leases
         waiting = queue:new() :: queue:queue(waiting()),
         fetching :: {pid(), deadline()} | undefined}).

-spec start_link(flake_client:client(), flake_client:options()) -> {ok, pid()} | {error, term()}.
start_link(Client, Options) ->
    case flake_client_options:check(Options) of
        {ok, Checked} -> gen_server:start_link({local, Client}, ?MODULE, {Client, Checked}, []);
        {error, _} = Error -> Error
    end.

%% --- in the caller's process

%% Returns the next N ids.
-spec take(flake_client:client(), pos_integer()) -> {ok, [run(), ...]} | {error, flake_client:failure()}.
take(Client, N) ->
    try ets:lookup(Client, lease) of
        [{lease, Taken, Run, Deadline}] ->
            case take_from(Taken, Run, Deadline, N, fun erlang:monotonic_time/0) of
                {ok, Run1} -> {ok, [Run1]};
                none -> take_slowly(Client, N)
            end;
        [] ->
            take_slowly(Client, N)
    catch
        error:badarg -> {error, {not_started, Client}}
    end.

%% The caller reads the time last, because it may have been delayed before.
take_from(Taken, Run, Deadline, N, Now) ->
    Count = flake_client_run:count(Run),
    case N =< Count andalso atomics:add_get(Taken, 1, N) of
        End when is_integer(End), End =< Count ->
            case Now() =< Deadline of
                true -> {ok, flake_client_run:slice(Run, End - N, N)};
                false -> none
            end;
        _ ->
            none
    end.

take_slowly(Client, N) ->
    with_config(Client, fun(#{lease := Lease} = Config) -> take_slowly(Client, N, Lease, Config) end).

take_slowly(Client, 1, undefined, Config) ->
    flake_client_sharing:take(Client, Config, deadline(Config));
take_slowly(_, N, undefined, Config) ->
    many(N, ?MAX_LEASE, Config, deadline(Config), []);
take_slowly(Client, N, #{size := Size}, _) when N =< Size ->
    call(Client, {take, N});
take_slowly(Client, N, _, Config) ->
    case many(N, ?MAX_LEASE, Config, deadline(Config), []) of
        {ok, Runs} ->
            case call(Client, {above, flake_client_run:last(Runs)}) of
                ok -> {ok, Runs};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% If the node refuses to hand out that many ids, asks for half as many.
many(0, _, _, _, Leases) ->
    {ok, lists:append(lists:reverse(Leases))};
many(N, Limit, Config, Deadline, Leases) ->
    Ask = min(N, Limit),
    case flake_client_nodes:ids(Config, {lease, Ask}, Deadline) of
        {ok, Runs, _} -> many(N - Ask, Limit, Config, Deadline, [Runs | Leases]);
        {error, badarg} when Ask > ?MAX_ANY -> many(N, max(Ask div 2, ?MAX_ANY), Config, Deadline, Leases);
        {error, _} = Error -> Error
    end.

%% Returns the answer to a request for something other than ids.
-spec ask(flake_client:client(), Request :: term()) -> {ok, term()} | {error, flake_client:failure()}.
ask(Client, Request) ->
    with_config(Client, fun(Config) -> flake_client_nodes:ask(Config, Request, deadline(Config)) end).

with_config(Client, Fun) ->
    try ets:lookup_element(Client, config, 2) of
        Config -> Fun(Config)
    catch
        error:badarg -> {error, {not_started, Client}}
    end.

%% No timeout is needed, because the server answers by the caller's deadline.
call(Client, Request) ->
    try gen_server:call(Client, Request, infinity)
    catch exit:_ -> {error, {not_started, Client}}
    end.

deadline(#{timeout := Timeout}) ->
    erlang:monotonic_time(millisecond) + Timeout.

%% --- in the server's process

-spec init({flake_client:client(), flake_client_options:options()}) -> {ok, #state{}}.
init({Client, #{nodes := Nodes} = Options}) ->
    Config = Options#{client => Client,
                      nodes := list_to_tuple(Nodes),
                      in_process => flake_client_in_process:open(),
                      order => flake_client_order:open(Client),
                      sharing => flake_client_sharing:open(length(Nodes))},
    Client = ets:new(Client, [named_table, protected, {read_concurrency, true}]),
    true = ets:insert(Client, {config, Config}),
    {ok, #state{config = Config}}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({take, N}, From, #state{config = Config, waiting = Waiting} = State) ->
    Waiter = {From, N, deadline(Config), erlang:monotonic_time()},
    {noreply, fetch_if_short(serve(State#state{waiting = queue:in(Waiter, Waiting)}))};
handle_call({share, Deadline}, From, #state{config = Config} = State) ->
    ok = flake_client_sharing:ask({From, Deadline}, Config),
    {noreply, State};
handle_call({above, Id}, _, State) ->
    {reply, ok, put_next_in_place(State#state{above = max(Id, State#state.above), next = []})};
handle_call(_, _, State) ->
    {reply, {error, badarg}, State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({fetched, Pid, {ok, Runs, Asked}}, #state{fetching = {Pid, _}} = State) ->
    {noreply, fetch_if_short(arrive(Runs, Asked, State#state{fetching = undefined}))};
handle_info({fetched, Pid, {error, _} = Error}, #state{fetching = {Pid, Until}, waiting = Waiting} = State) ->
    %% A caller that arrived during the fetch has a later deadline.
    {Failed, Others} = lists:splitwith(fun({_, _, Deadline, _}) -> Deadline =< Until end, queue:to_list(Waiting)),
    lists:foreach(fun({From, _, _, _}) -> gen_server:reply(From, Error) end, Failed),
    Left = State#state{fetching = undefined, waiting = queue:from_list(Others)},
    {noreply, case Others of
                  [] -> Left;
                  _ -> fetch(Left)
              end};
handle_info({half_age, Deadline, Used}, #state{deadline = Deadline, fetching = undefined} = State) ->
    case used(State) of
        Used -> {noreply, State};
        _ -> {noreply, fetch(State)}
    end;
handle_info(_, State) ->
    {noreply, State}.

%% A new lease serves the callers that were waiting when it was asked for, however long it
%% took to arrive, because they could not get a fresher one. If callers wait, the previous
%% lease is used up or too old.
arrive(Runs, Asked, #state{config = #{lease := #{max_age := MaxAge}}, above = Above, waiting = Waiting} = State) ->
    Deadline = Asked + erlang:convert_time_unit(MaxAge, millisecond, native),
    Arrived = State#state{next = [Run || Run <- Runs, flake_client_run:first([Run]) > Above],
                          deadline = Deadline, asked = Asked},
    Served =
        case queue:is_empty(Waiting) of
            true -> Arrived;
            false -> serve(Arrived#state{current = undefined})
        end,
    _ = erlang:send_after(max(1, MaxAge div 2), self(), {half_age, Deadline, used(Served)}),
    Served.

%% Returns a value that changes whenever an id is taken.
used(#state{current = undefined}) -> undefined;
used(#state{current = {Taken, _, _}}) -> {Taken, atomics:get(Taken, 1)}.

serve(#state{waiting = Waiting, asked = Asked} = State) ->
    case queue:out(Waiting) of
        {empty, _} ->
            State;
        {{value, {From, N, _, Since}}, Others} ->
            Now = case Since =< Asked of
                      true -> Asked;
                      false -> erlang:monotonic_time()
                  end,
            case draw(N, Now, State) of
                {Runs, Drawn} ->
                    gen_server:reply(From, {ok, Runs}),
                    serve(Drawn#state{waiting = Others});
                short ->
                    State
            end
    end.

draw(N, Now, #state{current = {Taken, Run, Deadline}} = State) ->
    case take_from(Taken, Run, Deadline, N, fun() -> Now end) of
        {ok, Run1} -> {[Run1], State};
        none -> draw(N, Now, State#state{current = undefined})
    end;
draw(N, Now, #state{next = Next, deadline = Deadline} = State) when Now =< Deadline ->
    case flake_client_run:split(N, Next) of
        {Runs, Rest} -> {Runs, put_next_in_place(State#state{next = Rest})};
        short -> short
    end;
draw(_, _, _) ->
    short.

%% If there is no next run, removes the current one.
put_next_in_place(#state{config = #{client := Client}, next = []} = State) ->
    true = ets:delete(Client, lease),
    State#state{current = undefined};
put_next_in_place(#state{config = #{client := Client}, next = [Run | Next], deadline = Deadline} = State) ->
    Taken = atomics:new(1, []),
    true = ets:insert(Client, {lease, Taken, Run, Deadline}),
    State#state{current = {Taken, Run, Deadline}, next = Next}.

fetch_if_short(#state{next = Next, waiting = Waiting, fetching = undefined} = State) ->
    case Next =:= [] orelse not queue:is_empty(Waiting) of
        true -> fetch(State);
        false -> State
    end;
fetch_if_short(State) ->
    State.

fetch(#state{config = #{lease := #{size := Size}} = Config, waiting = Waiting} = State) ->
    N = min(?MAX_LEASE, lists:sum([Size | [W || {_, W, _, _} <- queue:to_list(Waiting)]])),
    Until = case queue:peek(Waiting) of
                {value, {_, _, Deadline, _}} -> Deadline;
                empty -> deadline(Config)
            end,
    Server = self(),
    Pid = proc_lib:spawn_link(
            fun() -> Server ! {fetched, self(), flake_client_nodes:ids(Config, {lease, N}, Until)} end),
    State#state{fetching = {Pid, Until}}.
