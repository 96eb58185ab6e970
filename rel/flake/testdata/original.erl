%% Stands in for boundary/flake: a server with the same name, state and answers, and a timer
%% that saves the time in a dets file every second. It must compile on OTP 23.
%%
%%     erl -name flake@HOST -flake timestamp_path '"FILE"' -s original main -extra WORKER
-module(original).
-compile(nowarn_deprecated_function).
-export([main/0, init/1, handle_call/3, handle_cast/2, handle_info/2, format_status/1]).

main() ->
    [Worker] = init:get_plain_arguments(),
    ok = application:load({application, flake, [{description, ""}, {vsn, "0"}, {modules, []}, {registered, []}, {applications, []}]}),
    {ok, File} = application:get_env(flake, timestamp_path),
    {ok, timestamp_table} = dets:open_file(timestamp_table, [{estimated_no_objects, 10}, {type, set}, {file, File}]),
    {ok, _} = gen_server:start({local, flake}, ?MODULE, {flake, list_to_integer(Worker, 16)}, []),
    {ok, _} = gen_server:start({local, persistent_timer}, ?MODULE, timer, []),
    io:format("READY~n"),
    receive after infinity -> ok end.

init({flake, Worker}) ->
    {ok, {state, milliseconds(), Worker, 0}};
init(timer) ->
    {ok, _} = timer:send_interval(1000, save),
    {ok, timer}.

%% The tests' own requests. They set what the server does once a takeover has suspended it, replace
%% its state, and register processes: some that answer nothing, and a heart that replaces the server
%% before it answers.
handle_call({trick, Trick}, _From, timer) ->
    {reply, application:set_env(flake, trick, Trick), timer};
handle_call(heart, _From, timer) ->
    {reply, register(heart, spawn(fun() -> receive {From, set_cmd, _} -> replace(), From ! {heart, ok} end end)), timer};
handle_call({become, State}, _From, Before) ->
    {reply, Before, State};
handle_call({deaf, Name}, _From, timer) ->
    {reply, register(Name, spawn(fun() -> receive stop -> ok end end)), timer};
handle_call({kill, Name}, _From, timer) ->
    {reply, exit(whereis(Name), kill), timer};
handle_call(get, _From, State = {state, Last, Worker, Sequence}) ->
    case milliseconds() of
        Last -> given(Last, Worker, Sequence + 1);
        Later when Later > Last -> given(Later, Worker, 0);
        _ -> {reply, {error, clock_running_backwards}, State}
    end;
handle_call(get_last_timestamp, _From, timer) ->
    [{last_timestamp, T}] = dets:lookup(timestamp_table, last_timestamp),
    {reply, {ok, T}, timer};
handle_call(_, _From, State) -> {reply, ok, State}.

handle_cast(_, State) -> {noreply, State}.

handle_info(save, timer) ->
    ok = dets:insert(timestamp_table, {last_timestamp, milliseconds()}),
    {noreply, timer};
handle_info(_, State) -> {noreply, State}.

format_status(#{state := State} = Status) ->
    State =:= timer orelse whereis(flake_takeover) =:= undefined orelse trick(application:get_env(flake, trick, none)),
    Status.

trick(none) -> ok;
trick(another_server) -> replace();
trick({slow, Ms, Line}) -> io:format("~s~n", [Line]), timer:sleep(Ms).

%% Registers another process under the server's name until the takeover has ended.
replace() ->
    Server = whereis(flake),
    Another = spawn(fun() ->
        Watch = monitor(process, flake_takeover),
        receive {'DOWN', Watch, _, _, _} -> ok end,
        unregister(flake),
        register(flake, Server),
        forward(Server)
    end),
    unregister(flake),
    register(flake, Another).

forward(To) -> receive Message -> To ! Message, forward(To) after 0 -> ok end.

given(Time, Worker, Sequence) ->
    {reply, {ok, <<Time:64, Worker:48, Sequence:16>>}, {state, Time, Worker, Sequence}}.

milliseconds() ->
    {Mega, Seconds, Micro} = erlang:now(),
    (Mega * 1000000 + Seconds) * 1000 + Micro div 1000.
