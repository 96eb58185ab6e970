%% A real node for tests, with its own worker id and clock.
%%
%% The environment variable FLAKE is the command's path. clients/test builds the command
%% so that it adds the number in the file STEPPED_CLOCK, in nanoseconds, to its clock.
-module(flake_node).
-behaviour(gen_server).

-export([new/2, start/1, kill/1, close/1, set_clock/2, node/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(flake, {node, home, server}).

%% Returns a node that has not been started.
new(Name, Dir) ->
    Home = filename:join(Dir, Name),
    Node = Name ++ "@127.0.0.1",
    {ok, Server} = gen_server:start(?MODULE, Home, []),
    Flake = #flake{node = list_to_atom(Node), home = Home, server = Server},
    ok = filelib:ensure_dir(filename:join(Home, "sys.toml")),
    ok = file:write_file(filename:join(Home, "sys.toml"),
                         io_lib:format("[node]~nname = ~p~ncookie = \"flake\"~nepmd = \"127.0.0.1:~s\"~n"
                                       "[flake]~ntimestamp_path = ~p~nworker_id = \"~s\"~n",
                                       [Node, os:getenv("ERL_EPMD_PORT"), filename:join(Home, "timestamp"), worker()])),
    ok = set_clock(Flake, 0),
    Flake.

%% Returns a random, locally administered address, which no interface has.
worker() ->
    lists:flatten(lists:join($:, [io_lib:format("~2.16.0b", [B]) || <<B>> <= <<2, (crypto:strong_rand_bytes(5))/binary>>])).

node(#flake{node = Node}) -> Node.

%% Starts the node and waits until it hands out ids, which may take 3 s after a kill.
start(#flake{server = Server}) -> gen_server:call(Server, start, infinity).

%% Kills the node with SIGKILL, if it runs.
kill(#flake{server = Server}) -> gen_server:call(Server, kill, infinity).

%% Ends the node, whether it runs or not.
close(#flake{server = Server} = Flake) ->
    kill(Flake),
    gen_server:stop(Server).

%% Sets how far the node's clock is ahead.
set_clock(#flake{home = Home}, Ms) ->
    New = filename:join(Home, "clock.new"),
    ok = file:write_file(New, integer_to_list(Ms * 1000000)),
    file:rename(New, filename:join(Home, "clock")).

%% --- the process that owns the port

init(Home) -> {ok, {Home, none}}.

handle_call(start, _, {Home, none}) ->
    Port = open_port({spawn_executable, os:getenv("FLAKE")},
                     [{args, ["-noinput", "-config", filename:join(Home, "sys.toml")]},
                      {env, [{"STEPPED_CLOCK", filename:join(Home, "clock")}]},
                      {line, 1000}, exit_status, stderr_to_stdout]),
    ok = until(Port, "  EPMD "),
    {reply, ok, {Home, Port}};
handle_call(kill, _, {_, none} = State) ->
    {reply, ok, State};
handle_call(kill, _, {Home, Port}) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    "" = os:cmd("kill -KILL " ++ integer_to_list(Pid)),
    {exit_status, _} = until(Port, none),
    {reply, ok, {Home, none}}.

handle_cast(_, State) -> {noreply, State}.

handle_info({Port, {exit_status, Status}}, {_, Port}) -> {stop, {flake, Status}, none};
handle_info({Port, {data, {_, Line}}}, {_, Port} = State) -> ct:log("~ts", [Line]), {noreply, State}.

%% Waits for a line that begins with Prefix, or for the end of the command.
until(Port, Prefix) ->
    receive
        {Port, {data, {_, Line}}} ->
            case Prefix =/= none andalso string:prefix(Line, Prefix) of
                Rest when is_list(Rest) -> ok;
                _ -> ct:log("~ts", [Line]), until(Port, Prefix)
            end;
        {Port, {exit_status, Status}} ->
            {exit_status, Status}
    end.
