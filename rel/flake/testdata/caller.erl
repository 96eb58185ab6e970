%% Checks that Erlang nodes perform on a node that hands out ids:
%%
%%     erl -noinput -s caller main -extra NODE CHECK...
%%
%% A CHECK is a name, or name=ARGUMENT. Each prints "CHECK name ok" or "CHECK
%% name FAIL Reason". It must compile on OTP 23.
-module(caller).
-export([main/0, ids/2]).

main() ->
    load_tls(),
    [Node | Checks] = init:get_plain_arguments(),
    lists:foreach(fun(C) -> run(C, list_to_atom(Node)) end, Checks),
    halt(0).

%% Loads the modules of TLS before the handshake, because the server limits how long a handshake may take.
load_tls() ->
    [begin
         _ = application:load(App),
         {ok, Modules} = application:get_key(App, modules),
         code:ensure_modules_loaded(Modules)
     end || {ok, [["inet_tls"]]} <- [init:get_argument(proto_dist)], App <- [crypto, public_key, ssl]].

run(Check, N) ->
    [Name | Arg] = string:split(Check, "="),
    Fun = fun() -> check(Name, Arg, N) end,
    try
        case lists:member(Name, ["dynamic", "refused", "stop", "dialled", "collect", "leases", "formats", "collide", "silent", "up", "proxied", "across"]) of
            true -> Fun();
            false -> steady(Fun, N)
        end
    of
        _ -> io:format("CHECK ~s ok~n", [Name])
    catch
        Class:Why:Stack -> io:format("CHECK ~s FAIL ~0P~n", [Name, {Class, Why, Stack}, 60])
    end.

%% Whatever a check sends, the connection stays up and ids keep increasing. (A
%% call would silently set up a new connection.)
steady(Fun, N) ->
    true = connected(N),
    monitor_node(N, true),
    Before = id(N),
    Fun(),
    After = id(N),
    receive {nodedown, N} -> error(connection_lost) after 0 -> ok end,
    monitor_node(N, false),
    true = Before < After.

check("ping", _, N) ->
    pong = net_adm:ping(N);
check("get", _, N) ->
    increasing([id(N) || _ <- lists:seq(1, 1000)]);
%% In each base, an id as text is between the ids before and after it.
check("bases", _, N) ->
    [begin
         Before = id(N),
         {ok, [_ | _] = Text} = call(N, {get, Base}),
         Id = number(Text, Base),
         true = Before < Id andalso Id < id(N)
     end || Base <- lists:seq(2, 62)];
check("bad_bases", _, N) ->
    [{Base, {error, badarg}} = {Base, call(N, {get, Base})}
     || Base <- [bad, 0, 1, 63, -2, 1 bsl 70, 62.0, "62", <<62>>, [], {62}, self()]];
%% Ids in every form are between the ids of single calls.
check("many", _, N) ->
    [begin
         Before = id(N),
         {ok, Ids} = call(N, {get_many, Count}),
         {ok, Packed} = call(N, {get_binary, Count}),
         All = [Id || <<Id:128>> <- Ids] ++ [Id || <<Id:128>> <= Packed] ++ lease(N, Count),
         true = length(All) =:= 3 * Count,
         increasing([Before | All] ++ [id(N)])
     end || Count <- [1, 2, 255, 256, 257, 1000, 65536]],
    Leased = lease(N, 1048576),
    true = length(Leased) =:= 1048576,
    increasing(Leased);
check("texts", _, N) ->
    [begin
         {ok, Texts} = call(N, {get_many, Count, Base}),
         Count = length(Texts),
         increasing([number(Text, Base) || Text <- Texts])
     end || Base <- [2, 10, 16, 36, 62], Count <- [2, 1000]],
    [begin
         {ok, [First | _] = Texts} = call(N, {get_many, 300, Base}),
         Width = length(First),
         true = Texts =:= lists:usort(Texts),
         {ok, Next} = call(N, {get, Base}),
         true = lists:last(Texts) < Next,
         {ok, [_, _, _] = Fields} = call(N, {decompose, Next}),
         {ok, Fields} = call(N, {decompose, list_to_binary(Next), Base})
     end || {Base, Width} <- [{canonical, 22}, {crockford, 26}, {uuid, 36}]],
    {ok, Texts} = call(N, {get_many, 300, canonical}),
    increasing([number(Text, 62) || Text <- Texts]);
%% The fields of an id, and the lowest and highest ids of a time.
check("fields", _, N) ->
    {ok, <<Time:64, Worker:48, Seq:16>> = Id} = call(N, get),
    Fields = {ok, [{time, Time}, {worker, Worker}, {sequence, Seq}]},
    Text = integer_to_list(binary:decode_unsigned(Id), 36),
    <<A:8/binary, B:4/binary, C:4/binary, D:4/binary, E/binary>> =
        iolist_to_binary(io_lib:format("~32.16.0b", [binary:decode_unsigned(Id)])),
    Uuid = lists:join("-", [A, B, C, D, E]),
    [{Call, Fields} = {Call, call(N, Call)}
     || Call <- [{decompose, Id}, {decompose, Text, 36}, {decompose, list_to_binary(Text), 36},
                 {decompose, binary_to_list(iolist_to_binary(Uuid))}, {decompose, iolist_to_binary(Uuid)}]],
    {ok, <<Time:64, 0:64>> = Lowest} = call(N, {notional, Time}),
    {ok, {Lowest, <<Time:64, 16#FFFFFFFFFFFFFFFF:64>> = Highest}} = call(N, {notional, Time, Time}),
    true = Lowest =< Id andalso Id =< Highest;
check("info", _, N) ->
    Before = call(N, info),
    {ok, <<_:64, Worker:48, _:16>>} = call(N, get),
    {ok, _} = call(N, {lease, 99}),
    {error, badarg} = call(N, {lease, 0}),
    [{ok, _} = rpc:call(N, flake_server, id, Args) || Args <- [[], [62]]],
    [_, _, _] = rpc:call(N, flake_harness, generate, [3]),
    After = call(N, info),
    [format, worker, ids, waits, refusals, last, mark, uptime, version, worker_from] = [Key || {Key, _} <- After],
    [{Key, Value} = {Key, proplists:get_value(Key, After)} || {Key, Value} <- [{format, flake}, {worker, Worker}]],
    [105, 1] = [proplists:get_value(Key, After) - proplists:get_value(Key, Before) || Key <- [ids, refusals]],
    true = proplists:get_value(mark, After) > proplists:get_value(last, After);
%% Another caller on the connection need not wait until all large answers have arrived.
%% Its answer goes to an alias, so that all answers arrive in one mailbox. (There are no
%% aliases before OTP 24.)
check("held_up", _, N) ->
    Other = spawn_link(fun() -> receive after infinity -> ok end end),
    Calls = [{get_many, 65536}, {get_binary, 65536}, {lease, 1048576}, {get_many, 65536, 62}],
    [{flake, N} ! {'$gen_call', {self(), Call}, Call} || Call <- Calls],
    Last = case erlang:function_exported(erlang, alias, 0) of
               true -> Tag = [alias | any_alias()], {flake, N} ! {'$gen_call', {Other, Tag}, get}, [Tag];
               false -> []
           end,
    Answers = [receive {Which, {ok, _}} -> Which end || _ <- Calls ++ Last],
    true = lists:last(Answers) =:= lists:last(Calls),
    true = Answers -- Last =:= Calls,
    unlink(Other), exit(Other, kill);
%% A process is answered in the order of its calls, whatever they are.
check("ordered", _, N) ->
    [begin
         ordered({flake, N}),
         {flake, N} ! {'$gen_call', {self(), large}, {get_binary, 60000}},
         {flake, N} ! {system, {self(), state}, get_state},
         receive {First, _} when First =:= large; First =:= state -> large = First end,
         receive {state, _} -> ok end
     end || _ <- lists:seq(1, 5)];
%% Each answer carries the trace token, whatever its label is, as from a gen_server.
check("traced", _, N) ->
    [begin
         seq_trace:set_token(label, Label),
         {serial, {_, Serial}} = seq_trace:get_token(serial),
         Fun(),
         {0, Label, Now, From, Seen} = seq_trace:get_token(),
         true = Seen > Serial andalso Now =:= Seen + 1 andalso node(From) =:= N,
         seq_trace:set_token([])
     end || Label <- [17, 1 bsl 70, {label, self()}, make_ref()],
            Fun <- [fun() -> {ok, _} = call(N, get) end,
                    fun() -> {ok, _} = call(N, {get_many, 60000}) end,
                    fun() -> {state, _, _, _} = sys:get_state({flake, N}) end,
                    fun() -> {flake, N} ! {'$gen_call', {self(), tag}, get}, receive {tag, {ok, _}} -> ok end end,
                    fun() -> call(N, unknown) end]],
    [] = seq_trace:get_token();
%% Forwards calls to the server until the client ends.
check("proxy", _, N) ->
    register(proxy, self()),
    io:format("READY~n"),
    Client = receive {client, Pid} -> Pid end,
    monitor(process, Client),
    (fun Pass() ->
         receive
             {'$gen_call', _, _} = Call -> {flake, N} ! Call, Pass();
             {'DOWN', _, process, Client, _} -> ok
         end
     end)();
%% Calls that another node forwards are answered by a server that is not yet connected to the caller.
check("proxied", [Proxy], N) ->
    To = {proxy, list_to_atom(Proxy)},
    To ! {client, self()},
    ordered(To),
    true = lists:member(N, nodes(connected)),
    {ok, <<_:128>>} = gen_server:call(To, get);
check("bad_calls", _, N) ->
    [{Call, {error, badarg}} = {Call, call(N, Call)}
     || Call <- [{get_many, 0}, {get_many, 65537}, {get_many, -1}, {get_many, 1.0}, {get_many, many}, {get_many, 1, 63},
                 {get_many, 1 bsl 70}, {get_binary, 0}, {get_binary, 65537}, {get_binary, "1"}, {lease, 0},
                 {lease, 1048577}, {lease, <<1>>}, {get, meta, 1}, {notional, -1}, {notional, 1.0}, {notional, 2, 1},
                 {notional, 1 bsl 64}, {decompose, <<1, 2, 3>>}, {decompose, "x"}, {decompose, 1}, {decompose, ""},
                 {decompose, "x", 62.0}, {decompose, <<0:128>>, 63}, {decompose, "_", 62}, {decompose, [1024]},
                 {decompose, lists:duplicate(70000, $0)}]],
    [{Call, ok} = {Call, call(N, Call)} || Call <- [get_many, {get_many}, {lease, 1, 2}, {info, 1}, {notional}]];
check("unknown", _, N) ->
    [{Call, ok} = {Call, call(N, Call)} || Call <- [hello, {get}, {get, 2, 3}, 'GET', "get", <<"get">>]];
check("cast", _, N) ->
    ok = gen_server:cast({flake, N}, get);
check("message", _, N) ->
    {flake, N} ! get;
check("terms", _, N) ->
    [begin
         {Term, ok} = {Term, call(N, Term)},
         gen_server:cast({flake, N}, Term),
         {flake, N} ! Term
     end || Term <- terms(N)];
check("concurrent", _, N) ->
    Lists = parallel(200, fun() -> [id(N) || _ <- lists:seq(1, 50)] end),
    lists:foreach(fun increasing/1, Lists),
    200 * 50 = length(lists:usort(lists:append(Lists)));
%% All calls are sent before an answer is read; the answers arrive in order. The argument is how many: pipelined=CALLS.
check("pipelined", Many, N) ->
    Calls = lists:seq(1, calls(Many)),
    [{flake, N} ! {'$gen_call', {self(), Call}, get} || Call <- Calls],
    increasing([receive {Tag, {ok, <<Id:128>>}} -> Call = Tag, Id end || Call <- Calls]);
check("send_request", Many, N) ->
    Calls = [gen_server:send_request({flake, N}, get) || _ <- lists:seq(1, calls(Many))],
    increasing([begin
                    {reply, {ok, <<Id:128>>}} = gen_server:wait_response(Call, infinity),
                    Id
                end || Call <- Calls]);
%% An answer to an alias that is no longer active is dropped. (There are no aliases
%% before OTP 24, and the reference used instead stays valid.)
check("alias", _, N) ->
    Tag = [alias | any_alias()],
    Call = fun() -> {flake, N} ! {'$gen_call', {self(), Tag}, get} end,
    Call(),
    receive {Tag, {ok, _}} -> ok end,
    case erlang:function_exported(erlang, unalias, 1) of
        true -> apply(erlang, unalias, [tl(Tag)]), Call();
        false -> ok
    end,
    id(N),
    receive {Tag, _} -> error(not_dropped) after 0 -> ok end,
    register(named, self()),
    {flake, N} ! {'$gen_call', {{named, node()}, tag}, get},
    receive {tag, {ok, _}} -> ok end,
    unregister(named),
    case erlang:function_exported(erlang, alias, 0) of
        true -> aliased(N, apply(erlang, alias, []));
        false -> ok
    end;
check("monitors", _, N) ->
    Refs = [monitor(process, {flake, N}) || _ <- lists:seq(1, 10000)],
    id(N),
    [demonitor(Ref) || Ref <- Refs],
    id(N),
    receive {'DOWN', _, _, _, _} = Down -> error(Down) after 0 -> ok end;
check("noproc", _, N) ->
    Name = {no_such_name, N},
    {noproc, {gen_server, call, [Name, get, infinity]}} =
        try gen_server:call(Name, get, infinity) catch exit:Why -> Why end,
    Name ! message,
    Ref = monitor(process, Name),
    receive {'DOWN', Ref, process, Name, noproc} -> ok end;
%% The server survives a linked process that crashes, one that unlinks, and an exit signal.
check("link", [Pid], N) ->
    Server = pid(Pid),
    crash = outcome(fun() -> link(Server), id(N), exit(crash) end),
    normal = outcome(fun() -> link(Server), unlink(Server), id(N) end),
    same = outcome(fun() -> exit(Server, crash), id(N), exit(same) end);
%% A killed server is restarted, and does not hand out the same ids again.
check("kill", [Pid], N) ->
    Server = pid(Pid),
    Before = id(N),
    Self = self(),
    Linked = spawn_monitor(fun() -> link(Server), id(N), Self ! linked, receive after infinity -> ok end end),
    receive linked -> ok end,
    Ref = monitor(process, Server),
    Callers = [spawn_monitor(fun() -> exit({ids, attempts(N, 500)}) end) || _ <- lists:seq(1, 20)],
    exit(Server, kill),
    receive {'DOWN', Ref, process, Server, killed} -> ok end,
    killed = ended(Linked),
    Lists = [Ids || {ids, Ids} <- [ended(C) || C <- Callers]],
    20 = length(Lists),
    lists:foreach(fun increasing/1, Lists),
    All = lists:append(Lists),
    true = length(lists:usort(All)) =:= length(All),
    true = Before < lists:min(All),
    until_served(N);
check("dynamic", [Node], _) ->
    N = list_to_atom(Node),
    nonode@nohost = node(),
    true = net_kernel:connect_node(N),
    true = node() =/= nonode@nohost,
    io:format("NAMED ~s~n", [node()]),
    id(N);
check("refused", _, N) ->
    false = net_kernel:connect_node(N);
%% The client library, with a call for each id and with leases.
check("client", _, N) ->
    [begin
         {ok, _} = flake_client:start_link(Client, [{nodes, [N]}, {lease, Lease}]),
         Lists = parallel(10, fun() -> [element(2, flake_client:id(Client)) || _ <- lists:seq(1, 300)] end),
         lists:foreach(fun increasing/1, Lists),
         10 * 300 = length(lists:usort(lists:append(Lists))),
         {ok, [_, Text]} = flake_client:ids(Client, 2, 62),
         {ok, [{time, _}, {worker, _}, {sequence, _}]} = flake_client:decompose(Client, Text, 62)
     end || {Client, Lease} <- [{direct, undefined}, {leasing, #{size => 100}}]];
%% Prints "READY" and waits for the end of the server.
%% Whatever 100 callers are doing, monitors and links get the reason. Each may pause after a call: stop=MS.
check("stop", Pause, N) ->
    Ms = case Pause of [] -> 0; [Text] -> list_to_integer(Text) end,
    process_flag(trap_exit, true),
    Server = rpc:call(N, erlang, whereis, [flake]),
    link(Server),
    Refs = [monitor(process, {flake, N}) || _ <- lists:seq(1, 100)],
    monitor_node(N, true),
    id(N),
    Self = self(),
    [spawn(fun() -> [id(N) || _ <- Refs], Self ! calling, calls(N, Ms) end) || _ <- Refs],
    [receive calling -> ok end || _ <- Refs],
    io:format("READY~n"),
    [receive {'DOWN', Ref, process, {flake, N}, Why} -> shutdown = Why end || Ref <- Refs],
    receive {'EXIT', Server, Reason} -> shutdown = Reason end,
    receive {nodedown, N} -> ok end;
%% Prints "READY" and waits to be dialed.
check("dialled", _, N) ->
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    io:format("READY~n"),
    receive {nodeup, N, _} -> id(N) end;
%% Dials after it was dialed and before it has noticed that, each time under a different
%% name. Both sides end up with one connection, which stays: collide=PREFIX,TIMES,DIR.
%% Each round continues once DIR has a file with that name.
check("collide", [Arg], N) ->
    [Prefix, Times, Dir] = string:split(Arg, ",", all),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    [begin
         Name = list_to_atom(Prefix ++ integer_to_list(Time) ++ "@127.0.0.1"),
         {ok, _} = net_kernel:start([Name, longnames]),
         ok = sys:suspend(net_kernel),
         Dial = spawn_monitor(fun() -> exit(net_kernel:connect_node(N)) end),
         io:format("READY ~s~n", [Name]),
         until_dialled(whereis(net_kernel)),
         ok = sys:resume(net_kernel),
         true = ended(Dial),
         receive {nodeup, N, _} -> ok end,
         id(N),
         until_file(filename:join(Dir, Name)),
         receive {nodedown, N, _} = Down -> error(Down) after 0 -> ok end,
         id(N),
         ok = net_kernel:stop(),
         receive {nodedown, N, _} -> ok end
     end || Time <- lists:seq(1, list_to_integer(Times))];
%% Prints "READY", and sends the server nothing.
check("up", _, _) ->
    io:format("READY~n"),
    receive after infinity -> ok end;
%% Takes an id, prints "READY", and sends nothing more.
check("silent", _, N) ->
    id(N),
    io:format("READY~n"),
    receive after infinity -> ok end;
%% For each life of the server, all the ids that it handed out before it was killed are
%% written to a separate file: collect=LIVES,FOLDER.
check("collect", [Arg], N) ->
    [Lives, Folder] = string:split(Arg, ","),
    [begin
         until_connected(N),
         io:format("CALLING ~b~n", [Life]),
         Lists = [L || [_ | _] = L <- parallel(8, fun() -> until_down(N, []) end)],
         lists:foreach(fun increasing/1, Lists),
         Name = filename:join(Folder, integer_to_list(Life)),
         ok = file:write_file(Name, [<<Id:128>> || Id <- lists:append(Lists)]),
         io:format("LIFE ~b~n", [Life])
     end || Life <- lists:seq(1, list_to_integer(Lives))];
%% Calls from 32 processes, and leases from four, for a time; each call is answered within
%% a bound. The ids received are written to a file, as runs: honest=FOLDER,TIME,BOUND in ms.
check("honest", [Arg], N) ->
    [Folder, Time, Bound] = string:lexemes(Arg, ","),
    End = erlang:monotonic_time(millisecond) + list_to_integer(Time),
    io:format("CALLING~n"),
    Requests = lists:duplicate(32, fun() -> get end) ++ lists:duplicate(4, fun() -> {lease, rand:uniform(10000)} end),
    Lists = parallel([fun() -> in_time(N, Request, list_to_integer(Bound), End, [], 0) end || Request <- Requests]),
    [apart(Runs) || {Runs, _} <- Lists],
    ok = file:write_file(filename:join(Folder, "honest"),
                         [<<First:128, Count:32>> || {Runs, _} <- Lists, {First, Count} <- Runs]),
    io:format("SLOWEST ~b~n", [lists:max([Slowest || {_, Slowest} <- Lists])]);
%% Processes call repeatedly, even after the server was down, until a file exists:
%% across=FILE,PROCESSES. The ids from before the last outage are below those from after it.
check("across", [Arg], N) ->
    [File, Processes] = string:split(Arg, ","),
    until_connected(N),
    Watch = spawn_link(fun() -> until_file(File) end),
    io:format("CALLING~n"),
    All = parallel(list_to_integer(Processes), fun() -> across(N, Watch, [[]], now_us(), 0) end),
    {Given, Gaps} = lists:unzip(All),
    Lives = lists:max([length(G) || G <- Given]),
    [increasing(lists:reverse(lists:append(G))) || G <- Given],
    After = lists:append([hd(G) || G <- Given, length(G) =:= Lives]),
    Before = lists:append([lists:append(tl(G)) || G <- Given]),
    io:format("ACROSS before=~b after=~b twice=~b outages=~b above=~p gap=~bms~n",
              [length(Before), length(After), length(Before ++ After) - length(lists:usort(Before ++ After)), Lives - 1,
               lists:max([0 | Before]) < lists:min(After), lists:max(Gaps) div 1000]);
%% For each life of the server, all ids received are written to a separate file, as runs
%% <<First:128, Count:32>>, until this node is stopped: leases=FOLDER.
check("leases", [Folder], N) ->
    Calls = [fun() -> {lease, rand:uniform(1048576)} end, fun() -> {lease, 1 + rand:uniform(1000)} end,
             fun() -> {get_many, rand:uniform(300)} end, fun() -> get end, fun() -> get end],
    (fun Live(Life) ->
         until_connected(N),
         io:format("CALLING ~b~n", [Life]),
         Lists = [lists:reverse(Runs) || Runs <- parallel([fun() -> taken(N, Call, []) end || Call <- Calls])],
         [apart(Runs) || Runs <- Lists],
         ok = file:write_file(filename:join(Folder, integer_to_list(Life)),
                              [<<First:128, Count:32>> || Runs <- Lists, {First, Count} <- Runs]),
         io:format("LIFE ~b ~b~n", [Life, lists:sum([Count || Runs <- Lists, {_, Count} <- Runs])]),
         Live(Life + 1)
     end)(1);
%% Generators with other names and formats, through the server's lives; all ids of one
%% generator in a life are above its earlier ids: formats=LIVES,NAME/OCTETS,...
check("formats", [Arg], N) ->
    [Lives | Names] = string:lexemes(Arg, ","),
    Generators = [begin
                      [Name, Octets] = string:split(G, "/"),
                      {list_to_atom(Name), list_to_integer(Octets)}
                  end || G <- Names],
    Last = lists:foldl(
      fun(Life, Tops) ->
          until_connected(N),
          [texts({Name, N}, Octets) || {Name, Octets} <- Generators],
          io:format("CALLING ~b~n", [Life]),
          Funs = [fun() -> generated({Name, N}, Octets, Request, []) end
                  || {Name, Octets} <- Generators, Request <- [get, get, {get_many, 100}]],
          Lists = three_each(parallel(Funs)),
          Merged = [begin
                        [increasing(Ids) || [_ | _] = Ids <- Three],
                        All = [Top | lists:sort(lists:append(Three))],
                        increasing(All),
                        lists:last(All)
                    end || {Three, Top} <- lists:zip(Lists, Tops)],
          io:format("LIFE ~b~n", [Life]),
          Merged
      end, [<<>> || _ <- Generators], lists:seq(1, list_to_integer(Lives))),
    false = lists:member(<<>>, Last);
%% Calls to the original's other processes, and those of module sys.
check("servers", _, N) ->
    {ok, Saved} = gen_server:call({persistent_timer, N}, get_last_timestamp, infinity),
    true = abs(os:system_time(millisecond) - Saved) < 60000,
    [{persistent_timer, Timer, worker, [persistent_timer]}, {flake, Flake, worker, [flake_server]}] =
        supervisor:which_children({flake_sup, N}),
    true = Timer =/= Flake andalso node(Timer) =:= N andalso node(Flake) =:= N,
    [{specs, 2}, {active, 2}, {supervisors, 0}, {workers, 2}] = supervisor:count_children({flake_sup, N}),
    {ok, #{id := flake, start := {flake_server, start_link, []}, restart := permanent, type := worker,
           modules := [flake_server]}} = supervisor:get_childspec({flake_sup, N}, flake),
    {error, not_found} = supervisor:get_childspec({flake_sup, N}, nobody),
    {ok, {flake, _, worker, _}} = gen_server:call({flake_sup, N}, {which_child, flake}), % OTP 28's which_child
    {error, not_found} = gen_server:call({flake_sup, N}, {which_child, nobody}),
    0 = gen_server:call({net_kernel, N}, ticktime) rem 1000, % in milliseconds, since OTP 24
    {ok, <<Time:64, Worker:48, Seq:16>>} = call(N, get),
    {state, Time, Worker, Seq} = sys:get_state({flake, N}, infinity),
    {status, Flake, {module, gen_server}, [[_ | _], running, Parent, [], Misc]} = sys:get_status({flake, N}, infinity),
    [{header, "Status for generic server flake"},
     {data, [{"Status", running}, {"Parent", Parent}, {"Logged events", []}]},
     {data, [{"State", {state, _, Worker, _}}]}] = Misc,
    {ok, <<_:128>>} = gen_server:call(Flake, get, infinity),
    Flake = rpc:call(N, erlang, whereis, [flake]),
    undefined = rpc:call(N, erlang, whereis, [no_such_name]),
    [false = global:set_lock({lock, self()}, Nodes, 0) || Nodes <- [[N], [node(), N]]],
    true = global:set_lock({lock, self()}, [node()], 0),
    true = global:del_lock({lock, self()}),
    [{Request, Reply} = {Request, sys_reply(N, Request)}
     || {Request, Reply} <-
            [{resume, ok}, {{debug, no_debug}, ok}, {{debug, {statistics, true}}, ok},
             {{debug, {statistics, get}}, {ok, no_statistics}}, {{debug, {statistics, false}}, ok},
             {{debug, {log, true}}, ok}, {{debug, {log, {true, 5}}}, ok}, {{debug, {log, get}}, {ok, []}},
             {{debug, {log, print}}, ok}, {{debug, {log, false}}, ok}, {{debug, {trace, true}}, ok},
             {{debug, {trace, false}}, ok}, {{debug, {log_to_file, "/tmp/x"}}, {error, open_file}},
             {{debug, {log_to_file, false}}, ok}, {{debug, {remove, x}}, ok}, {{debug, {install, {x, fun() -> x end, 1}}}, unknown_debug},
             {{debug, {statistics, x}}, unknown_debug}, {{debug, x}, unknown_debug}]];
%% A server that is told to stop ends with the given reason, loses nothing and is restarted.
check("terminate", _, N) ->
    [begin
         Before = id(N),
         Pid = another(N, undefined),
         Self = self(),
         Linked = spawn_monitor(fun() -> link(Pid), id(N), Self ! linked, receive after infinity -> ok end end),
         receive linked -> ok end,
         ok = gen_server:stop({flake, N}, Reason, infinity),
         Reason = ended(Linked),
         true = is_process_alive(another(N, Pid), N),
         false = is_process_alive(Pid, N),
         true = Before < id(N)
     end || Reason <- [shutdown, {shutdown, "x"}, {odd, #{1 => self()}}]],
    Pid = another(N, undefined),
    ok = gen_server:stop({flake, N}),
    another(N, Pid),
    {error, {unknown_system_msg, {terminate, normal}}} = sys:terminate({flake_sup, N}, normal),
    exit = try gen_server:stop({flake, N}, binary:copy(<<"x">>, 1000), infinity) catch exit:killed -> exit end,
    another(N, undefined);
%% Spawns, as in current OTP releases and as before OTP 23.
check("spawns", _, N) ->
    [{Option, error, badopt} = {Option, element(3, Reply), element(4, Reply)}
     || Option <- [bad, "x", {bad, 1}, {priority, x}, {fullsweep_after, x}, {min_heap_size, -1}, {max_heap_size, #{}},
                   {message_queue_data, x}, {link, true}, {monitor, bad}, {a, b, c}],
        Reply <- [spawned(N, [Option])]],
    [{Option, ok} = {Option, element(3, spawned(N, [Option]))}
     || Option <- [link, monitor, {priority, high}, {fullsweep_after, 5}, {min_heap_size, 100}, {max_heap_size, 0},
                   {max_heap_size, #{size => 0}}, {min_bin_vheap_size, 7}, {message_queue_data, off_heap}]],
    undef = try spawn_link(N, dbg, do_relay, [self(), self()]) catch error:Why -> Why end,
    case code:ensure_loaded(dbg) of
        {module, _} -> {ok, _} = dbg:tracer(), {error, _} = dbg:n(N);
        _ -> ok
    end,
    Kernel = fun(Request) -> gen_server:call({net_kernel, N}, Request, infinity) end,
    Pid = Kernel({spawn, flake_server, id, [], group_leader()}),
    true = is_pid(Pid) andalso node(Pid) =:= N,
    {undef, [{m, f, [1], []}]} =
        outcome(fun() -> Kernel({spawn_link, m, f, [1], group_leader()}), receive after infinity -> ok end end),
    {undef, [{m, f, [], []}]} =
        outcome(fun() -> Kernel({spawn_opt, m, f, [], [{priority, high}], link, group_leader()}), receive after infinity -> ok end end),
    {'EXIT', {badarg, []}} = Kernel({spawn_opt, m, f, [], [bad], no_link, group_leader()}),
    {'EXIT', {badarg, []}} = Kernel({spawn, m, f, no_list, group_leader()}),
    [{'EXIT', {system_limit, []}} = Kernel({Word, m, f, [Term], group_leader()})
     || Word <- [spawn, spawn_link], Term <- beyond_limits()];
%% The functions of the original, called in every way.
check("functions", _, N) ->
    [functions(fun(M, F, A) -> Road(N, M, F, A) end, N) || Road <- roads()],
    Ids = [Id || {ok, {ok, <<Id:128>>}} <- erpc:multicall([N, N, N], flake_server, id, [])],
    3 = length(lists:usort(Ids)),
    Request = erpc:send_request(N, flake_server, id, [10]),
    {ok, [_ | _]} = erpc:receive_response(Request, infinity),
    ok = erpc:cast(N, flake_server, id, []),
    {[N], []} = rpc:multicall([N], erlang, node, []),
    pong = rpc:call(N, net_adm, ping, [node()]),
    pang = rpc:call(N, net_adm, ping, ['nobody@127.0.0.1']),
    true = lists:member(node(), rpc:call(N, erlang, nodes, [connected])),
    {ok, <<_:128>>} = erpc:call(N, fun flake_server:id/0),
    normal = ended(spawn_monitor(N, fun flake_server:id/0)),
    {undef, _} = ended(spawn_monitor(N, fun no_such_module:f/0)),
    exit = try erpc:call(N, erlang, exit, [why]) catch _:{exception, undef, _} -> exit end,
    {[N], []} = rpc:sbcast([N], flake, hello),
    {[], [N]} = rpc:sbcast([N], no_such_name, hello),
    {[N], []} = rpc:sbcast([N], flake, {'$gen_call', {self(), sbcast}, get}),
    receive {sbcast, {ok, <<_:128>>}} -> ok end,
    [{rex, N} ! {self(), {sbcast, flake, {'$gen_call', {self(), sbcast}, get}}} || _ <- lists:seq(1, 1000)],
    [receive {rex, N, N} -> receive {sbcast, {ok, <<_:128>>}} -> ok end end || _ <- lists:seq(1, 1000)],
    stopped = gen_server:call({rex, N}, stop);
%% Refused calls: each returns an error, and nothing is lost.
check("refusals", _, N) ->
    [{Reason, {badrpc, {'EXIT', {Reason, [{M, F, A, []}]}}}} = {Reason, rpc:call(N, M, F, A)}
     || {Reason, M, F, A} <-
            [{undef, os, cmd, ["ls"]}, {undef, erlang, halt, []}, {undef, file, delete, ["/tmp/x"]},
             {undef, no_such_module, f, [1]}, {undef, flake_harness, generate, []},
             {undef, flake_harness, generate, [1, 2, 3]}, {badarg, flake_harness, generate, [-1]},
             {badarg, flake_harness, generate, [many]}, {badarg, flake_harness, generate, [1.0]},
             {badarg, flake_harness, generate, [1, 1]}, {badarg, flake_harness, generate, [1, 63]},
             {system_limit, flake_harness, generate, [1000000000]},
             {system_limit, flake_harness, generate, [1000000, 2]},
             {badarg, flake_util, as_list, [1, 1]}, {badarg, flake_util, as_list, [a, 10]},
             {badarg, flake_util, gen_id, [a, 1, 1]}, {badarg, flake_util, hw_addr_to_int, [[1, 2]]},
             {badarg, flake_util, hw_addr_to_int, [[1, 2, 3, 4, 5, 256]]},
             {badarg, erlang, whereis, ["flake"]}, {badarg, erlang, nodes, [some]},
             {badarg, net_adm, ping, [1]}, {badarg, gen_server, call, [1, get]},
             {badarg, gen_server, call, [{1, N}, get]}, {badarg, erlang, nodes, [[this | hidden]]},
             {badarg, erlang, nodes, [[this, x]]}, {badarg, erlang, memory, [x]}, {badarg, erlang, memory, [[total, x]]},
             {badarg, erlang, is_process_alive, [self()]}, {badarg, flake, module_info, [x]}, {undef, flake, start_link, []},
             {badarg, code, ensure_loaded, ["flake"]}, {badarg, erlang, function_exported, [flake, start, -1]},
             {badarg, erlang, system_info, [process_count]}]],
    [{badrpc, {'EXIT', {Reason, {gen_server, call, [Server, get]}}}} = rpc:call(N, gen_server, call, [Server, get])
     || {Reason, Server} <- [{noproc, {nobody, N}}, {{nodedown, 'x@127.0.0.1'}, {flake, 'x@127.0.0.1'}}]],
    {badrpc, {'EXIT', {noproc, {sys, get_state, [nobody]}}}} = rpc:call(N, sys, get_state, [nobody]),
    {badrpc, {'EXIT', {noproc, {gen_server, call, [nobody, which_children, infinity]}}}} =
        rpc:call(N, supervisor, which_children, [nobody]),
    {badrpc, {'EXIT', {noproc, {gen_server, call, [nobody, get]}}}} = rpc:call(N, gen_server, call, [nobody, get]),
    [{badrpc, {'EXIT', {notsup, _}}} = rpc:call(N, gen_server, call, [Server, {call, erlang, node, [], user}])
     || Server <- [rex, {rex, node()}]],
    {error, system_limit} = rpc:call(N, gen_server, call, [flake, {get_many, 65536}]),
    Large = binary:copy(<<"x">>, 1 bsl 20 - 100),
    [begin
         {error, badarg} = Call(N, flake_server, id, [Large]),
         {badrpc, {'EXIT', {undef, [{os, cmd, [Large], []}]}}} = Call(N, os, cmd, [Large]),
         {badrpc, _} = Call(N, flake_server, id, [[Large, Large]])
     end || Call <- [fun rpc:call/4, fun rpc:block_call/4]],
    [{badrpc, {'EXIT', system_limit}} = Road(N, m, f, [Term])
     || Road <- roads() -- [fun erpc:call/4], Term <- beyond_limits()],
    [system_limit = try erpc:call(N, m, f, [Term]) catch error:{erpc, Limit} -> Limit end || Term <- beyond_limits()],
    {error, not_supported} = rpc:call(N, flake, stop, []),
    {error, {unknown_system_msg, suspend}} = sys_reply(N, suspend);
check("idle", [Secs], N) ->
    receive {nodedown, N} -> error(nodedown) after list_to_integer(Secs) * 1000 -> ok end,
    true = lists:member(N, nodes(connected)).

%% Called through rex, in a node that is otherwise silent.
ids(N, Calls) ->
    [begin {ok, Id} = call(N, get), Id end || _ <- lists:seq(1, Calls)].

roads() ->
    [fun rpc:call/4, fun erpc:call/4, fun rpc:block_call/4,
     fun(N, M, F, A) -> gen_server:call({rex, N}, {call, M, F, A, group_leader()}, infinity) end,
     fun(N, M, F, A) ->
             {rex, N} ! {self(), {call, M, F, A, user}},
             receive {rex, Result} -> Result end
     end].

functions(Call, N) ->
    N = Call(erlang, node, []),
    [<<C:128>>, <<B:128>>, <<A:128>>] = Call(flake_harness, generate, [3]),
    increasing([A, B, C]),
    [] = Call(flake_harness, generate, [0]),
    Texts = Call(flake_harness, generate, [5, 62]),
    5 = length(lists:usort(Texts)),
    [_, _] = Call(flake_harness, timed_generate, [2]),
    [[_ | _]] = Call(flake_harness, timed_generate, [1, 2]),
    {ok, <<Time:64, _:64>>} = Call(flake_server, id, []),
    {ok, [_ | _]} = Call(flake_server, id, [36]),
    {ok, [_ | _]} = Call(erlang, apply, [fun flake_server:id/1, [36]]),
    {ok, [_ | _]} = Call(erlang, apply, [flake_server, id, [36]]),
    {error, badarg} = Call(flake_server, id, [63]),
    "FF" = Call(flake_util, as_list, [255, 16]),
    "-FF" = Call(flake_util, as_list, [-255, 16]),
    "z" = Call(flake_util, as_list, [61, 62]),
    "0" = Call(flake_util, as_list, [0, 2]),
    "1" ++ _ = Call(flake_util, as_list, [1 bsl 200, 2]),
    <<7:64, 8:48, 9:16>> = Call(flake_util, gen_id, [7, 8, 9]),
    16#010203040506 = Call(flake_util, hw_addr_to_int, [[1, 2, 3, 4, 5, 6]]),
    true = Call(flake_util, curr_time_millis, []) >= Time,
    [{Mac, Address} = {Mac, Call(flake_util, hw_addr_to_int, [Mac])}
     || Octets <- [<<0, 27, 33, 195, 169, 1>> | [rand:uniform(1 bsl 48) - 1 || _ <- lists:seq(1, 200)]],
        <<Address:48>> <- [if is_binary(Octets) -> Octets; true -> <<Octets:48>> end],
        Mac <- [binary_to_list(<<Address:48>>)]],
    {ok, 0} = Call(flake_util, get_if_hw_int, ["lo"]),
    {error, if_not_found} = Call(flake_util, get_if_hw_int, [undefined]),
    case Call(flake_util, get_default_if, []) of
        undefined -> no_interface_has_a_mac_address;
        If -> {ok, _} = Call(flake_util, get_if_hw_int, [If])
    end,
    {error, if_not_found} = Call(flake_util, get_if_hw_int, ["no such interface"]),
    2592000000 = Call(flake, get_config_value, [allowable_downtime, x]),
    x = Call(flake, get_config_value, [no_such_key, x]),
    [_ | _] = Call(flake, get_config_value, [timestamp_path, x]),
    {flake, "flake", [_ | _]} = lists:keyfind(flake, 1, Call(application, which_applications, [])),
    {ok, Saved} = Call(persistent_timer, get_last_timestamp, []),
    true = abs(os:system_time(millisecond) - Saved) < 60000,
    {error, {already_started, flake}} = Call(flake, start, []),
    ok = Call(flake_sup, upgrade, []),
    [{module, flake}, {exports, Exports}, {attributes, []}, {compile, []}] = Call(flake, module_info, []),
    Exports = Call(flake, module_info, [exports]),
    [] = [{start, 0}, {stop, 0}, {get_config_value, 2}, {module_info, 0}, {module_info, 1}] -- Exports,
    persistent_timer = Call(persistent_timer, module_info, [module]),
    {module, flake_server} = Call(code, ensure_loaded, [flake_server]),
    [{error, nofile} = Call(code, ensure_loaded, [Tool]) || Tool <- [shell, iex, 'Elixir.IEx', observer_backend]],
    [true, false] = [Call(erlang, function_exported, [flake_server, id, Arity]) || Arity <- [1, 2]],
    true = list_to_integer(Call(erlang, system_info, [otp_release])) > 25,
    {ok, 2592000000} = Call(application, get_env, [flake, allowable_downtime]),
    undefined = Call(application, get_env, [flake, no_such_key]),
    undefined = Call(application, get_env, [no_such_application, allowable_downtime]),
    Memory = Call(erlang, memory, []),
    [total, processes, processes_used, system, atom, atom_used, binary, code, ets] = [Kind || {Kind, _} <- Memory],
    true = proplists:get_value(total, Memory) > proplists:get_value(processes, Memory),
    [{system, _}, {total, _}] = Call(erlang, memory, [[system, total]]),
    true = is_integer(Call(erlang, memory, [total])),
    Flake = Call(erlang, whereis, [flake]),
    true = Call(erlang, is_process_alive, [Flake]),
    [{state, _, _, _} = Call(sys, get_state, [Server]) || Server <- [flake, Flake, {flake, N}]],
    [{persistent_timer, _, worker, _}, {flake, Flake, worker, _}] = Call(supervisor, which_children, [flake_sup]),
    [{specs, 2} | _] = Call(supervisor, count_children, [{flake_sup, N}]),
    {ok, #{id := flake}} = Call(supervisor, get_childspec, [flake_sup, Flake]),
    {ok, {flake, Flake, worker, _}} = Call(supervisor, which_child, [flake_sup, flake]),
    [N] = Call(erlang, nodes, [this]),
    [[] = [N, node()] -- Call(erlang, nodes, [Which]) || Which <- [known, [this, hidden, visible, this]]],
    [] = Call(erlang, nodes, [[]]),
    [{ok, <<_:128>>} = Call(gen_server, call, [Server, get]) || Server <- [flake, Flake, {flake, N}]],
    {ok, [<<_:128>>, _]} = Call(gen_server, call, [flake, {get_many, 2}]),
    {ok, [{<<_:128>>, _} | _]} = Call(gen_server, call, [flake, {lease, 1000}, 5000]),
    Names = Call(erlang, registered, []),
    [] = [flake, flake_sup, persistent_timer, net_kernel, rex] -- Names.

%% Terms that are too deep, too long or too large for the node.
beyond_limits() -> [nested(1000), lists:duplicate(150000, a), 1 bsl 70000].

spawned(N, Options) ->
    Ref = spawn_request(N, erlang, node, [], Options),
    receive {spawn_reply, Ref, _, _} = Reply -> Reply end.

%% The server's pid, once it is not Pid.
another(N, Pid) ->
    case rpc:call(N, erlang, whereis, [flake]) of
        Not when Not =:= Pid; Not =:= undefined -> another(N, Pid);
        Another -> Another
    end.

is_process_alive(Pid, N) -> rpc:call(N, erlang, is_process_alive, [Pid]).

sys_reply(N, Request) ->
    Ref = make_ref(),
    {flake, N} ! {system, {self(), Ref}, Request},
    receive {Ref, Reply} -> Reply end.

terms(N) ->
    [#{[key] => {value}, {a} => #{}}, 1.5, -0.0, 1 bsl 4000, -(1 bsl 4000), 1 bsl 63, <<5:3>>, <<>>,
     [improper | list], [], {}, "", lists:duplicate(70000, $x), lists:seq(1, 300),
     list_to_tuple(lists:seq(1, 300)), nested(10000),
     fun() -> N end, fun lists:map/2, self(), make_ref(), any_alias(), hd(erlang:ports()),
     list_to_atom([16#416, 16#438]), binary:copy(<<"x">>, 1 bsl 20)].

nested(0) -> [];
nested(Depth) -> [nested(Depth - 1)].

%% An alias, or a reference before OTP 24, which has no aliases.
any_alias() ->
    case erlang:function_exported(erlang, alias, 0) of
        true -> apply(erlang, alias, []);
        false -> make_ref()
    end.

call(N, Request) -> gen_server:call({flake, N}, Request, infinity).

%% Calls in the name of an alias, and with a tag that begins with it.
aliased(N, Alias) ->
    Nested = [[alias | Alias] | more],
    Calls = fun() ->
                [{flake, N} ! {'$gen_call', From, get} || From <- [{Alias, tag}, {self(), Nested}]]
            end,
    Calls(),
    receive {tag, {ok, _}} -> ok end,
    receive {Nested, {ok, _}} -> ok end,
    apply(erlang, unalias, [Alias]),
    Calls(),
    id(N),
    receive {Name, {ok, _}} -> error({not_dropped, Name}) after 0 -> ok end.

calls([]) -> 70000;
calls([Many]) -> list_to_integer(Many).

%% Calls until a call fails, with a pause after each.
calls(N, Ms) ->
    id(N),
    Ms =:= 0 orelse timer:sleep(Ms),
    calls(N, Ms).

id(N) ->
    {ok, <<Id:128>>} = call(N, get),
    Id.

%% All ids of a lease. Each run is within one millisecond.
lease(N, Count) ->
    {ok, Runs} = call(N, {lease, Count}),
    lists:append([begin
                      true = Seq + Length =< 65536,
                      lists:seq(First, First + Length - 1)
                  end || {<<First:128>>, Length} <- Runs, <<_:112, Seq:16>> <- [<<First:128>>]]).

attempt(N) -> try call(N, get) catch exit:{Why, _} -> Why end.

attempts(N, Times) -> [Id || {ok, <<Id:128>>} <- [attempt(N) || _ <- lists:seq(1, Times)]].

%% The server refuses a handshake that takes 7 s. This machine was then too busy, so the check tries again.
connected(N) ->
    Begun = erlang:monotonic_time(millisecond),
    net_kernel:connect_node(N) orelse (erlang:monotonic_time(millisecond) - Begun >= 7000 andalso connected(N)).

until_connected(N) ->
    case net_kernel:connect_node(N) of
        true -> ok;
        false -> timer:sleep(10), until_connected(N)
    end.

until_down(N, Ids) ->
    case attempt(N) of
        {ok, <<Id:128>>} -> until_down(N, [Id | Ids]);
        _ -> lists:reverse(Ids)
    end.

%% The ids of one process, the last first, in a list for each life of the server, and the longest
%% time without an id, in us.
across(N, Watch, [Ids | Before] = Lives, Last, Gap) ->
    case (Ids =:= [] orelse is_process_alive(Watch)) andalso attempt(N) of
        {ok, <<Id:128>>} ->
            Now = now_us(),
            across(N, Watch, [[Id | Ids] | Before], Now, max(Gap, Now - Last));
        false -> {Lives, Gap};
        {error, clock_running_backwards} -> across(N, Watch, Lives, Last, Gap);
        _ -> away(N), across(N, Watch, [[] | Lives], Last, Gap)
    end.

away(N) ->
    case net_kernel:connect_node(N) of
        true -> ok;
        false -> timer:sleep(1), away(N)
    end.

now_us() -> erlang:monotonic_time(microsecond).

until_served(N) ->
    case attempt(N) of
        {ok, _} -> ok;
        noproc -> until_served(N)
    end.

until_dialled(Kernel) ->
    {messages, Waiting} = process_info(Kernel, messages),
    case lists:keymember(accept, 1, Waiting) of
        true -> ok;
        false -> erlang:yield(), until_dialled(Kernel)
    end.

until_file(File) ->
    case filelib:is_file(File) of
        true -> ok;
        false -> timer:sleep(1), until_file(File)
    end.

pid(Hex) -> binary_to_term(<<(list_to_integer(Hex, 16)):(length(Hex) * 4)>>).

number(Text, Base) -> lists:foldl(fun(C, Acc) -> Acc * Base + digit(C, Base) end, 0, Text).

digit(C, Base) ->
    Digit = if C =< $9 -> C - $0; C =< $Z -> C - $A + 10; true -> C - $a + 36 end,
    true = 0 =< Digit andalso Digit < Base,
    Digit.

increasing([A | [B | _] = Rest]) when A < B -> increasing(Rest);
increasing([_]) -> ok.

%% The runs that one caller receives until a time, and how long the slowest call took.
in_time(N, Request, Bound, End, Runs, Slowest) ->
    case erlang:monotonic_time(millisecond) of
        Start when Start < End ->
            {ok, Given} = gen_server:call({flake, N}, Request(), Bound),
            Took = erlang:monotonic_time(millisecond) - Start,
            timer:sleep(5), % otherwise other programs on this machine would wait
            in_time(N, Request, Bound, End, lists:reverse(runs(Given), Runs), max(Took, Slowest));
        _ -> {lists:reverse(Runs), Slowest}
    end.

runs(<<Id:128>>) -> [{Id, 1}];
runs(Leased) -> [{First, Count} || {<<First:128>>, Count} <- Leased].

%% The runs that one caller receives until the server is down, the last one first.
taken(N, Call, Runs) ->
    try call(N, Call()) of
        {ok, <<Id:128>>} -> taken(N, Call, [{Id, 1} | Runs]);
        {ok, [{_, _} | _] = Leased} ->
            taken(N, Call, lists:reverse([{First, Count} || {<<First:128>>, Count} <- Leased], Runs));
        {ok, Ids} -> taken(N, Call, lists:reverse([{Id, 1} || <<Id:128>> <- Ids], Runs))
    catch
        exit:_ -> Runs
    end.

%% The ids that one caller receives until the server is down.
generated(Server, Octets, Request, Ids) ->
    try gen_server:call(Server, Request, infinity) of
        {ok, Id} when byte_size(Id) =:= Octets -> generated(Server, Octets, Request, [bare(Id) | Ids]);
        {ok, Many} when is_list(Many) -> generated(Server, Octets, Request, lists:reverse([bare(Id) || Id <- Many], Ids))
    catch
        exit:_ -> lists:reverse(Ids)
    end.

%% An id without random bits, because two ids must differ in the other bits.
bare(<<0:16, _:14/binary>> = Id) -> Id;
bare(<<Id:14/binary, _:2/binary>>) -> Id;
bare(Id) -> Id.

%% Answers arrive in the order of the calls, and their ids ascend.
ordered(Server) ->
    Calls = lists:zip(lists:seq(1, 6), [get, {get_many, 60000}, get, {get_binary, 300}, {get_many, 3}, get]),
    [Server ! {'$gen_call', {self(), Tag}, Call} || {Tag, Call} <- Calls],
    Answers = [receive {Tag, {ok, Ids}} when is_integer(Tag) -> {Tag, Ids} end || _ <- Calls],
    true = [Tag || {Tag, _} <- Answers] =:= [Tag || {Tag, _} <- Calls],
    increasing([Id || {_, Ids} <- Answers, <<Id:128>> <= iolist_to_binary(Ids)]).

three_each([]) -> [];
three_each([A, B, C | Rest]) -> [[A, B, C] | three_each(Rest)].

%% A generator's text forms, runs and times agree with its ids.
texts(Server, Octets) ->
    Call = fun(Request) -> {ok, Reply} = gen_server:call(Server, Request, infinity), Reply end,
    Id = Call(get),
    Octets = byte_size(Id),
    Fields = Call({decompose, Id}),
    {time, Ms} = hd(Fields),
    {Lowest, Highest} = Call({notional, Ms, Ms}),
    true = Lowest =< Id andalso Id =< Highest,
    Number = list_to_integer(Call({get, 10})),
    true = Number > binary:decode_unsigned(Id),
    Text = Call({get, canonical}),
    [{time, Later} | _] = Call({decompose, Text}),
    true = Later >= Ms,
    Fields = Call({decompose, integer_to_list(binary:decode_unsigned(Id), 36), 36}),
    Leased = [at(First, I) || {First, Count} <- Call({lease, 5000}), I <- lists:seq(0, Count - 1)],
    5000 = length(Leased),
    increasing([Id | Leased] ++ [Call(get)]),
    Octets =/= 10 orelse [7 = Meta || {<<_:40, Meta, _:4/binary>>, _} <- Call({lease, meta, 7, 5000})],
    Other = fun(One) -> [Field || {Name, _} = Field <- Call({decompose, One}), not lists:member(Name, [time, sequence, random])] end,
    [Same] = lists:usort([Other(One) || One <- [Id, hd(Leased), lists:last(Leased)]]),
    Same = Other(Text),
    {error, badarg} = gen_server:call(Server, {get, 63}, infinity),
    {error, badarg} = gen_server:call(Server, {decompose, <<Id/binary, 0>>}, infinity),
    ok = gen_server:call(Server, unknown, infinity).

%% The id at index I of a run, computed as in docs/calls.md.
at(<<0:16, _:14/binary>> = First, I) -> <<N:128>> = First, <<(N + I):128>>;
at(<<High:64, Low:8/binary>>, I) -> <<(High + I):64, Low/binary>>;
at(First, I) -> S = bit_size(First), <<N:S>> = First, <<(N + I):S>>.

%% One caller's runs ascend and do not overlap.
apart([{First, Count} | [{Next, _} | _] = Rest]) when First + Count =< Next -> apart(Rest);
apart([_]) -> ok;
apart([]) -> ok.

%% The results of Fun in many processes at the same time, or of several functions, each in its own process.
parallel(Processes, Fun) -> parallel(lists:duplicate(Processes, Fun)).

parallel(Funs) ->
    Started = [spawn_monitor(fun() -> exit({result, Fun()}) end) || Fun <- Funs],
    [begin {result, R} = ended(P), R end || P <- Started].

outcome(Fun) -> ended(spawn_monitor(Fun)).
ended({Pid, Ref}) -> receive {'DOWN', Ref, process, Pid, Why} -> Why end.
