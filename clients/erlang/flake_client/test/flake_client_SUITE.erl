%% Tests clients with real nodes, which are killed and restarted, and whose clocks step.
-module(flake_client_SUITE).
-compile([export_all, nowarn_export_all]).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

suite() -> [{timetrap, {minutes, 10}}].

all() -> [{group, one}, {group, in_process}, {group, played}, {group, own}].

groups() ->
    [{one, [], [application, questions, bad_arguments, text, formats, many_ids, crowd, no_node, leased, message_order,
                freshness, late_lease, few_at_once, past_the_lease, small_leases, restarted_client]},
     {in_process, [], [application, questions, bad_arguments, text, many_ids, crowd, leased, message_order,
                       freshness, past_the_lease, small_leases, restarted_client]},
     {played, [], [shared, shared_by_many, shared_formats, shared_and_refused, shared_past_a_deadline, shared_elsewhere,
                   only_get, killed_caller, killed_client]},
     {own, [], [leases_outlive_the_node, slow_start, killed_under_load, millions, failover, clock_steps, clock_back_for_long,
                other_clock_behind]}].

init_per_suite(Config) ->
    {ok, _} = net_kernel:start(['flake_client_test@127.0.0.1', longnames]),
    true = erlang:set_cookie(node(), flake),
    Config.

end_per_suite(_) ->
    net_kernel:stop().

%% The tests of group one share a node. The tests of group in_process use the stand-in for a
%% node. The tests of group played stand in for nodes themselves. Each test of group own has two
%% nodes; only the first is started for it.
init_per_group(one, Config) -> start_nodes("one", Config);
init_per_group(in_process, Config) -> [{a, in_process} | Config];
init_per_group(played, Config) -> [{a, played} | Config];
init_per_group(own, Config) -> Config.

end_per_group(one, Config) -> close_nodes(Config);
end_per_group(_, _) -> ok.

init_per_testcase(Case, Config) ->
    case ?config(a, Config) of
        undefined -> start_nodes(atom_to_list(Case), Config);
        _ -> Config
    end.

end_per_testcase(Case, Config) ->
    {_, _, Own} = lists:keyfind(own, 1, groups()),
    lists:member(Case, Own) andalso close_nodes(Config),
    ok.

start_nodes(Name, Config) ->
    Dir = filename:join(?config(priv_dir, Config), Name),
    [A, B] = [flake_node:new(Prefix ++ Name, Dir) || Prefix <- ["a_", "b_"]],
    ok = flake_node:start(A),
    [{a, A}, {b, B} | Config].

close_nodes(Config) ->
    [flake_node:close(?config(Node, Config)) || Node <- [a, b]].

%% --- calls

application(Config) ->
    application:load(flake_client),
    application:set_env(flake_client, nodes, [a(Config)]),
    {ok, _} = application:ensure_all_started(flake_client),
    {ok, <<_:128>>} = flake_client:id(),
    ok = application:stop(flake_client),
    ?assertEqual({error, {not_started, flake_client}}, flake_client:id()),
    application:set_env(flake_client, timeout, never),
    {error, _} = application:start(flake_client),
    [application:unset_env(flake_client, Key) || Key <- [nodes, timeout]],
    ok = application:start(flake_client),
    ?assertEqual({error, {not_started, flake_client}}, flake_client:id()),
    ok = application:stop(flake_client).

questions(Config) ->
    client(flake_client, Config, []),
    {ok, <<Time:64, Worker:48, Sequence:16>> = Id} = flake_client:id(),
    ?assertEqual({ok, [{time, Time}, {worker, Worker}, {sequence, Sequence}]}, flake_client:decompose(Id)),
    ?assertEqual({ok, <<Time:64, 0:64>>}, flake_client:notional(Time)),
    ?assertEqual({ok, {<<Time:64, 0:64>>, <<(Time + 1):64, -1:64>>}}, flake_client:notional(Time, Time + 1)),
    {ok, [A, B, C]} = flake_client:ids(3),
    increasing([Id, A, B, C]).

bad_arguments(Config) ->
    client(flake_client, Config, []),
    [?assertEqual({Bad, {error, badarg}}, {Bad, apply(flake_client, Function, Arguments)})
     || {Function, Arguments} = Bad <- [{id, [1]}, {id, [63]}, {ids, [0]}, {ids, [-1]}, {ids, [many]}, {ids, [3, 63]},
                                        {notional, [-1]}, {notional, ["1"]}, {notional, [2, 1]}, {notional, [1 bsl 64]},
                                        {decompose, [17]}, {decompose, [<<1:64>>]}, {decompose, ["!"]},
                                        {decompose, ["10", 1]}, {decompose, ["2", 2]},
                                        {decompose, ["BCeaFUnvigQXG3iGuW"]}, {decompose, ["BCeaFUnvigQXG3iGuW", canonical]}]].

%% A node reads the text that the library writes, in each base.
text(Config) ->
    client(flake_client, Config, []),
    [begin
         {ok, Id} = flake_client:id(),
         {ok, Text} = flake_client:id(Base),
         Fields = flake_client:decompose(Id),
         ?assertEqual({Base, Fields}, {Base, flake_client:decompose(element(2, flake_client:to_text(Id, Base)), Base)}),
         {ok, [{time, Time} | _]} = flake_client:decompose(Text, Base),
         ?assert([{time, Time}] >= lists:sublist(element(2, Fields), 1)),
         {ok, [Text1, Text2]} = flake_client:ids(2, Base),
         ?assertMatch([{ok, [{time, _} | _]}, {ok, [{time, _} | _]}], [flake_client:decompose(T, Base) || T <- [Text1, Text2]])
     end || Base <- [canonical | lists:seq(2, 62)]],
    {ok, Id} = flake_client:id(),
    [?assertEqual({Text, flake_client:decompose(Id)}, {Text, flake_client:decompose(Text)}) || Text <- [element(2, flake_client:to_text(Id, canonical)), uuid(Id)]].

%% Ids of all formats ascend, whether taken one by one, together or from a lease, and a node
%% reads their text.
formats(_) ->
    Node = list_to_atom(os:getenv("FLAKE_NODE")),
    [begin
         {ok, _} = flake_client:start_link(Name, [{nodes, [Node]}, {name, Name}, {lease, Lease}]),
         Since = os:system_time(millisecond),
         Ids = one(Name) ++ some(Name, 3) ++ one(Name) ++ some(Name, 20000) ++ one(Name),
         increasing(Ids),
         [begin
              ?assertEqual(Bytes, byte_size(Id)),
              {ok, Fields} = flake_client:decompose(Name, Id),
              {ok, Ms} = apply(flake_client, time, [Id | Epoch]),
              ?assertEqual({time, Ms}, hd(Fields)),
              ?assertEqual(parts(Name, Id), [Value || {Key, Value} <- Fields, lists:member(Key, [machine, worker, partition, sequence])]),
              ?assert(Ms >= Since - 4),
              {ok, Text} = flake_client:to_text(Id, Base),
              ?assertEqual({ok, Fields}, flake_client:decompose(Name, Text)),
              ?assertEqual({ok, Fields}, flake_client:decompose(Name, Text, Base)),
              ?assertEqual({ok, Id}, flake_client:from_text(Text, Base, Bytes))
          end || Id <- [hd(Ids), lists:nth(15000, Ids), lists:last(Ids)]],
         {ok, Text} = flake_client:id(Name, Base),
         {ok, Texts} = flake_client:ids(Name, 2, Base),
         increasing([element(2, flake_client:from_text(T, Base, Bytes)) || T <- [Text | Texts]]),
         gen_server:stop(Name)
     end || {Name, Bytes, Base, Epoch} <- [{orders, 8, canonical, [1288834974657]}, {old, 8, canonical, [0]}, {events, 10, canonical, []},
                                           {uuids, 16, uuid, []}, {ulids, 16, ulid, []}],
            Lease <- [undefined, #{size => 3000}]].

%% Takes ids apart with the patterns in README.md.
parts(orders, <<_Ms:42, Machine:10, Sequence:12>>) -> [Machine, Sequence];
parts(old, <<_Ms:42, _Datacenter:5, Worker:5, Sequence:12>>) -> [Worker, Sequence];
parts(events, <<_Units:39, _TickTock:1, _Meta:8, Partition:16, Sequence:16>>) -> [Partition, Sequence];
parts(uuids, <<_Ms:48, 7:4, Sequence:12, 2:2, Worker:48, _Random:14>>) -> [Sequence, Worker];
parts(ulids, <<_Ms:48, Sequence:16, Worker:48, _Random:16>>) -> [Sequence, Worker].

uuid(<<A:32, B:16, C:16, D:16, E:48>>) ->
    lists:flatten(io_lib:format("~8.16.0b-~4.16.0b-~4.16.0b-~4.16.0b-~12.16.0b", [A, B, C, D, E])).

%% More ids than a node hands out in one call.
many_ids(Config) ->
    [begin
         client(Client, Config, Options),
         {ok, Before} = flake_client:id(Client),
         {ok, Ids} = flake_client:ids(Client, 1100000),
         ?assertEqual(1100000, length(Ids)),
         {ok, After} = flake_client:id(Client),
         increasing([Before] ++ Ids ++ [After])
     end || {Client, Options} <- [{direct, []}, {leasing, [{lease, #{}}]}]].

no_node(Config) ->
    Gone = 'nobody@127.0.0.1',
    A = a(Config),
    [begin
         client(no_node, Config, Options ++ [{timeout, 100}, {lease, Lease}]),
         [refused(Failed, Ask) || Ask <- [fun() -> flake_client:id(no_node) end,
                                          fun() -> flake_client:ids(no_node, 70000) end,
                                          fun() -> flake_client:notional(no_node, 70000) end]],
         gen_server:stop(no_node)
     end || Lease <- [undefined, #{}],
            {Options, Failed} <- [{[{nodes, [Gone]}], [{Gone, nodedown}]},
                                  {[{name, nobody}], [{A, noproc}]},
                                  {[{nodes, [Gone, A]}, {name, nobody}], [{Gone, nodedown}, {A, noproc}]},
                                  {[{name, persistent_timer}], [{A, unexpected_reply}]}]],
    client(no_node, Config, [{timeout, 100}]),
    await(fun() -> element(1, flake_client:id(no_node)) =:= ok end),
    erlang:disconnect_node(A),
    erlang:set_cookie(A, wrong),
    refused([{A, refused}], fun() -> flake_client:id(no_node) end),
    erlang:set_cookie(A, flake),
    await(fun() -> element(1, flake_client:id(no_node)) =:= ok end).

%% Each of many callers gets ids of its own, although they share requests.
crowd(Config) ->
    Client = client(crowd, Config, []),
    erlang:trace(Client, true, [procs]),
    unique(parallel(lists:duplicate(100, fun() -> [one(crowd) || _ <- lists:seq(1, 100)] end))),
    a(Config) =:= in_process orelse receive {trace, Client, spawn, _, _} -> ok end.

%% --- calls that share a request, for which the test stands in for the node

%% Callers that meet share a request, and do not wait for the answer to an earlier one. A caller that
%% is alone involves no other process. All get ids as the node made them.
shared(_) ->
    play(shared, []),
    Ids = [Id1, Id2, Id3, Id4 | Later] = [<<16#019fdd9eeeed:48, 7:4, I:12, 2:2, 9:48, (99 - I):14>> || I <- lists:seq(1, 6)],
    {First, Get, Met} = meet(shared, 3),
    answer(asked({get_many, 3}), {ok, [Id2, Id3, Id4]}),
    ?assertEqual([{ok, Id} || Id <- [Id2, Id3, Id4]], [ended(Caller) || Caller <- Met]),
    answer(Get, {ok, Id1}),
    ?assertEqual({ok, hd(Ids)}, ended(First)),
    ok = sys:suspend(shared),
    [?assertEqual({ok, Id}, alone(shared, {ok, Id})) || Id <- Later].

%% A request is for a limited number of ids.
shared_by_many(_) ->
    play(by_many, []),
    {First, Get, Met} = meet(by_many, 258),
    {Some, [Id1, Id2, Id3]} = lists:split(256, ids(259)),
    [answer(asked({get_many, N}), {ok, Ids}) || {N, Ids} <- [{2, [Id1, Id2]}, {256, Some}]],
    ?assertEqual([{ok, Id} || Id <- Some ++ [Id1, Id2]], [ended(Caller) || Caller <- Met]),
    answer(Get, {ok, Id3}),
    ?assertEqual({ok, Id3}, ended(First)).

%% A real node answers.
shared_formats(_) ->
    Node = list_to_atom(os:getenv("FLAKE_NODE")),
    [begin
         play(Name, []),
         {First, Get, Met} = meet(Name, 9),
         [answer(From, gen_server:call({Name, Node}, Request))
          || {From, Request} <- [{Get, get}, {asked({get_many, 9}), {get_many, 9}}]],
         Ids = [Id || {ok, Id} <- [ended(Caller) || Caller <- [First | Met]]],
         increasing(Ids),
         ?assertEqual({Name, lists:duplicate(10, Bytes)}, {Name, [byte_size(Id) || Id <- Ids]})
     end || {Name, Bytes} <- [{flake, 16}, {orders, 8}, {old, 8}, {events, 10}, {uuids, 16}, {ulids, 16}]].

%% A request that was refused, or whose process was killed, is repeated.
shared_and_refused(_) ->
    Self = self(),
    StandIn = fun() ->
                      Pid = spawn_link(fun F() -> receive Message -> Self ! Message, F() end end),
                      true = register(stand_in, Pid),
                      Pid
              end,
    Pid = StandIn(),
    play(refused, [{name, stand_in}]),
    {First, Get, Met} = meet(refused, 3),
    answer(asked({get_many, 3}), {error, clock_running_backwards}),
    _ = asked({get_many, 3}),
    unlink(Pid),
    exit(Pid, kill),
    await(fun() -> whereis(stand_in) =:= undefined end),
    StandIn(),
    Ids = ids(4),
    answer(asked({get_many, 3}), {ok, tl(Ids)}),
    ?assertEqual([{ok, Id} || Id <- tl(Ids)], [ended(Caller) || Caller <- Met]),
    answer(Get, {ok, hd(Ids)}), % too late: the process that was asked is dead
    answer(asked(get), {ok, hd(Ids)}),
    ?assertEqual({ok, hd(Ids)}, ended(First)).

%% A caller whose time is up fails. Another, which met it, has its own deadline.
shared_past_a_deadline(_) ->
    play(past_deadline, [{timeout, 3000}]),
    _ = call(past_deadline),
    _ = asked(get),
    ok = sys:suspend(past_deadline),
    Early = queued(past_deadline, 1),
    Deadline = erlang:monotonic_time(millisecond) + 3000,
    await(fun() -> erlang:monotonic_time(millisecond) > Deadline end),
    Other = call(past_deadline),
    _ = asked(get),
    Late = queued(past_deadline, 2),
    ok = sys:resume(past_deadline),
    _ = asked({get_many, 2}),
    [Id] = ids(1),
    answer(asked(get), {ok, Id}),
    ?assertEqual({ok, Id}, ended(Late)),
    ?assertEqual({error, {no_node_available, [{node(), timeout}]}}, ended(Early)),
    kill(Other).

%% If the first node is down, another answers.
shared_elsewhere(_) ->
    play(elsewhere, [{nodes, ['nobody@127.0.0.1', node()]}]),
    {First, Get, Met} = meet(elsewhere, 3),
    [Id | Ids] = ids(4),
    answer(Get, {ok, Id}),
    ?assertEqual({ok, Id}, ended(First)),
    answer(asked({get_many, 3}), {ok, Ids}),
    ?assertEqual([{ok, I} || I <- Ids], [ended(Caller) || Caller <- Met]).

%% A node that does not answer with so many ids is asked for one at a time, without the client's
%% process, until it fails.
only_get(_) ->
    Ids = [Id1, Id2, Id3, Id4] = ids(4),
    [begin
         play(Client, [{nodes, Nodes}]),
         {First, Get, Met} = meet(Client, 3),
         answer(asked({get_many, 3}), Answer),
         Gets = [asked(get) || _ <- Met],
         [answer(From, {ok, Id}) || {From, Id} <- lists:zip([Get | Gets], Ids)],
         ?assertEqual([{ok, Id} || Id <- Ids], lists:sort([ended(Caller) || Caller <- [First | Met]])),
         ok = sys:suspend(Client),
         Callers = [call(Client) || _ <- lists:seq(1, 4)],
         [answer(From, {ok, Id}) || {From, Id} <- lists:zip([asked(get) || _ <- Callers], ids(4))],
         [{ok, _} = ended(Caller) || Caller <- Callers],
         ok = sys:resume(Client),
         Last = call(Client),
         answer(asked(get), {error, timestamp_not_saved}),
         answer(asked(get), {ok, hd(ids(1))}),
         {ok, _} = ended(Last),
         {Again, _, MetAgain} = meet(Client, 2),
         _ = asked({get_many, 2}),
         [kill(Caller) || Caller <- [Again | MetAgain]]
     end || {Client, {Nodes, Answer}} <-
                [{list_to_atom("only_get_" ++ integer_to_list(I)), Case}
                 || {I, Case} <- lists:zip(lists:seq(1, 11),
                                           [{[node()], Answer}
                                            || Answer <- [ok, {ok, ok}, {ok, []}, {ok, [Id2, Id3]}, {ok, [Id1, Id2, Id3, Id4]},
                                                          {ok, [Id2, Id3 | Id4]}, {ok, [Id2, Id3, <<4:64>>]}, {ok, [2, 3, 4]},
                                                          {ok, [<<I:72>> || I <- [2, 3, 4]]}, {error, badarg}]] ++
                                               [{['nobody@127.0.0.1', node()], ok}])]].

%% A killed caller leaves the others alone. When its time is up, another takes its place.
killed_caller(_) ->
    play(killed_caller, [{timeout, 3000}]),
    [Id1, Id2, Id3, Id4, Id5] = ids(5),
    {First, _, [Met1, Met2, Met3]} = meet(killed_caller, 3),
    Deadline = erlang:monotonic_time(millisecond) + 3000,
    From = asked({get_many, 3}),
    [kill(Caller) || Caller <- [First, Met2]],
    answer(From, {ok, [Id1, Id2, Id3]}),
    ?assertEqual([{ok, Id1}, {ok, Id3}], [ended(Caller) || Caller <- [Met1, Met3]]),
    ?assertEqual({ok, Id4}, alone(killed_caller, {ok, Id4})),
    await(fun() -> erlang:monotonic_time(millisecond) > Deadline end),
    ok = sys:suspend(killed_caller),
    ?assertEqual({ok, Id5}, alone(killed_caller, {ok, Id5})).

%% If the client's process is killed, whether it has made the request or not, callers ask for
%% themselves.
killed_client(_) ->
    true = register(played, self()),
    Options = [{nodes, [node()]}, {name, played}, {timeout, 60000}],
    {ok, Supervisor} = flake_client_test_sup:start_link([flake_client:child_spec(killed_client, Options)]),
    [begin
         {First, Get, Met} = meet(killed_client, 3),
         _ = asked({get_many, 3}),
         ok = sys:suspend(killed_client),
         Callers = [First | Met] ++ [queued(killed_client, 1)],
         exit(whereis(killed_client), kill),
         Gets = [Get | [asked(get) || _ <- tl(Callers)]],
         [answer(From, {ok, Id}) || {From, Id} <- lists:zip(Gets, ids(5))],
         [{ok, _} = ended(Caller) || Caller <- Callers],
         [_] = [Pid || {_, Pid, _, _} <- supervisor:which_children(Supervisor), is_pid(Pid)]
     end || _ <- [1, 2]],
    exit(Supervisor, normal).

%% --- leases

%% Many processes take ids at the same time, with every function.
leased(Config) ->
    client(leased, Config, [{lease, #{size => 3000}}]),
    client(direct, Config, []),
    Takers = [fun() -> Take() end
              || Take <- [fun() -> one(leased) end, fun() -> some(leased, 7) end, fun() -> some(leased, 2000) end,
                          fun() -> some(leased, 3001) end, fun() -> one(direct) end, fun() -> some(direct, 5000) end],
                 _ <- [1, 2]],
    unique(parallel([fun() -> [Take() || _ <- lists:seq(1, 50)] end || Take <- Takers])).

%% An id is above the ids in a message that the process received before taking it.
message_order(Config) ->
    client(order, Config, [{lease, #{size => 50}}]),
    Self = self(),
    Next = fun F() ->
                   receive
                       {Ids, [Pid | Pids]} -> Pid ! {one(order) ++ Ids, Pids ++ [Pid]}, F();
                       stop -> ok
                   end
           end,
    Pids = [spawn_link(Next) || _ <- lists:seq(1, 20)],
    Last = spawn_link(fun F() ->
                              receive
                                  {Ids, _} when length(Ids) >= 5000 -> Self ! {ids, Ids};
                                  {Ids, [Pid | Others]} -> Pid ! {one(order) ++ Ids, Others ++ [Pid]}, F()
                              end
                      end),
    hd(Pids) ! {[], tl(Pids) ++ [Last]},
    receive {ids, Ids} -> increasing(lists:reverse(Ids)) end,
    [Pid ! stop || Pid <- Pids].

%% The remaining ids of a lease that is too old are dropped, whether or not ids were taken
%% in the meantime. So an id is above all ids that the node handed out to other clients
%% more than max_age ago.
freshness(Config) ->
    MaxAge = 20,
    client(fresh, Config, [{lease, #{size => 100000, max_age => MaxAge}}]),
    client(direct, Config, []),
    [begin
         one(fresh), % from a lease, which is fetched if there is none
         [Others] = one(direct),
         Given = erlang:monotonic_time(),
         Old = Given + erlang:convert_time_unit(MaxAge, millisecond, native),
         await(fun() -> Meanwhile(), erlang:monotonic_time() > Old end),
         increasing([Others | one(fresh)])
     end || Meanwhile <- [fun() -> one(fresh) end, fun() -> ok end], _ <- lists:seq(1, 25)].

%% If the answer to a lease fetched ahead takes longer than max_age, the lease does not
%% serve a call that began in the meantime.
late_lease(_) ->
    MaxAge = 20,
    true = register(slow, self()),
    {ok, _} = flake_client:start_link(late, [{nodes, [node()]}, {name, slow}, {lease, #{size => 1, max_age => MaxAge}}]),
    Call = fun() -> spawn_monitor(fun() -> exit({ids, one(late)}) end) end,
    Asked = fun() -> receive {'$gen_call', From, {lease, N}} -> {From, N} end end,
    Answer = fun({From, N}, Time) -> gen_server:reply(From, {ok, [{<<Time:64, 0:64>>, N}]}) end,
    [Time1, Time2, Time3] = [erlang:unique_integer([positive, monotonic]) || _ <- [1, 2, 3]],
    First = Call(),
    Answer(Asked(), Time1),
    [<<Time1:64, _:64>>] = ended(First),
    Late = Asked(),
    Old = erlang:monotonic_time() + erlang:convert_time_unit(MaxAge, millisecond, native),
    await(fun() -> erlang:monotonic_time() > Old end),
    Second = Call(),
    timer:sleep(20), % the test also passes if the answer arrives before the call
    Answer(Late, Time2),
    Answer(Asked(), Time3),
    ?assertMatch([<<Time3:64, _:64>>], ended(Second)).

%% A generator with few ids per tick refuses to hand out many in one call.
few_at_once(_) ->
    Few = spawn_link(fun F() ->
                             receive
                                 {'$gen_call', From, {lease, N}} when N > 1024 -> gen_server:reply(From, {error, badarg});
                                 {'$gen_call', From, {lease, N}} ->
                                     gen_server:reply(From, {ok, [{<<(erlang:unique_integer([positive, monotonic])):64, 0:64>>, N}]})
                             end,
                             F()
                     end),
    true = register(few, Few),
    {ok, Client} = flake_client:start_link(few_ids, [{nodes, [node()]}, {name, few}]),
    increasing(some(few_ids, 5000)),
    gen_server:stop(Client),
    unlink(Few),
    exit(Few, kill).

%% A call for more ids than a lease contains returns ids above those leased before, and
%% below those leased after.
past_the_lease(Config) ->
    client(past, Config, [{lease, #{size => 10}}]),
    increasing(lists:append([one(past) ++ some(past, N) ++ one(past) || N <- [1, 9, 10, 11, 100, 70000, 10, 11, 1]])).

%% However small the leases are, each waiting caller gets its own id.
small_leases(Config) ->
    client(small, Config, [{lease, #{size => 1}}]),
    unique(parallel(lists:duplicate(50, fun() -> [one(small) || _ <- lists:seq(1, 10)] end))).

restarted_client(Config) ->
    Options = [{nodes, [a(Config)]}, {lease, #{}}],
    {ok, Supervisor} = flake_client_test_sup:start_link([flake_client:child_spec(restarted, Options)]),
    Lists = [begin
                 Ids = [one(restarted) || _ <- lists:seq(1, 10)],
                 Ref = monitor(process, restarted),
                 exit(whereis(restarted), kill),
                 receive {'DOWN', Ref, _, _, killed} -> ok end,
                 [_] = [Pid || {_, Pid, _, _} <- supervisor:which_children(Supervisor), is_pid(Pid)],
                 Ids
             end || _ <- lists:seq(1, 3)],
    increasing(lists:append(lists:append(Lists))),
    exit(Supervisor, normal).

%% --- nodes that stop, clocks that step

leases_outlive_the_node(Config) ->
    client(outlive, Config, [{lease, #{size => 1000, max_age => 60000}}, {timeout, 5000}]),
    First = one(outlive),
    flake_node:kill(?config(a, Config)),
    increasing(First ++ lists:append([one(outlive) || _ <- lists:seq(1, 1000)])),
    ?assertMatch({error, {no_node_available, [{_, nodedown}]}}, flake_client:ids(outlive, 100000)).

%% Two calls wait for a node. The second has its own timeout.
slow_start(Config) ->
    B = ?config(b, Config),
    {ok, _} = flake_client:start_link(slow, [{nodes, [flake_node:node(B)]}, {timeout, 12000}, {lease, #{}}]),
    [First, Second] = [begin
                           Call = spawn_monitor(fun() -> exit({ids, [flake_client:id(slow)]}) end),
                           timer:sleep(Pause),
                           Call
                       end || Pause <- [11000, 0]],
    ?assertMatch([{error, {no_node_available, _}}], ended(First)),
    ok = flake_node:start(B),
    ?assertMatch([{ok, _}], ended(Second)).

killed_under_load(Config) ->
    two_clients([a(Config)], 30000),
    load(fun() ->
                 [begin
                      progress(),
                      ok = flake_node:kill(?config(a, Config)),
                      ok = flake_node:start(?config(a, Config))
                  end || _ <- [1, 2]]
         end).

%% Several callers take 100 million leased ids, and others ask the node directly, which is
%% killed twice. No two runs of ids overlap.
millions(Config) ->
    A = ?config(a, Config),
    Goal = 100000000,
    {ok, _} = flake_client:start_link(many, [{nodes, [a(Config)]}, {timeout, 60000}, {lease, #{size => 100000}}]),
    Taken = counters:new(1, []),
    Stop = atomics:new(1, []),
    Leased = fun() ->
                     {ok, Runs} = flake_client_server:take(many, 1000),
                     counters:add(Taken, 1, 1000),
                     [{flake_client_run:first([Run]), flake_client_run:count(Run)} || Run <- Runs]
             end,
    Got = fun() ->
                  try gen_server:call({flake, a(Config)}, get) of
                      {ok, Id} -> [{Id, 1}]
                  catch
                      exit:_ -> timer:sleep(5), []
                  end
          end,
    Takers = [spawn_monitor(fun() -> exit({ids, lists:append(take_until(Stop, Take, []))}) end)
              || Take <- [Leased, Leased, Leased, Leased, Got, Got]],
    [begin
         await(fun() -> counters:get(Taken, 1) >= Goal * Third div 3 end),
         ok = flake_node:kill(A),
         ok = flake_node:start(A)
     end || Third <- [1, 2]],
    await(fun() -> counters:get(Taken, 1) >= Goal end),
    atomics:put(Stop, 1, 1),
    Lists = [ended(T) || T <- Takers],
    [true = List =:= lists:sort(List) || List <- Lists],
    Runs = lists:append(Lists),
    ct:pal("~b ids in ~b runs", [lists:sum([Count || {_, Count} <- Runs]), length(Runs)]),
    disjoint(lists:sort(Runs)).

disjoint([{A, Count} | [{B, _} | _] = Rest]) ->
    binary:decode_unsigned(A) + Count =< binary:decode_unsigned(B) orelse error({overlap, A, Count, B}),
    disjoint(Rest);
disjoint([_]) ->
    ok.

%% The second node takes over, and stays in use when the first is back.
failover(Config) ->
    {A, B} = {?config(a, Config), ?config(b, Config)},
    two_clients([flake_node:node(A), flake_node:node(B)], 30000),
    ok = flake_node:start(B),
    load(fun() ->
                 [WorkerA] = workers(),
                 ok = flake_node:kill(A),
                 progress(),
                 [WorkerB] = workers(),
                 ?assert(WorkerA =/= WorkerB),
                 ok = flake_node:start(A),
                 progress(),
                 ?assertEqual([WorkerB], workers()),
                 ok = flake_node:kill(B),
                 progress(),
                 ?assertEqual([WorkerA], workers())
         end).

%% The clock steps back and forward; then a node whose clock is behind takes over.
clock_steps(Config) ->
    {A, B} = {?config(a, Config), ?config(b, Config)},
    two_clients([flake_node:node(A), flake_node:node(B)], 30000),
    load(fun() ->
                 [begin
                      progress(),
                      ok = flake_node:set_clock(A, Ms)
                  end || Ms <- [-300, -200, 0, -20, 2000]],
                 [WorkerA] = workers(),
                 ok = flake_node:start(B),
                 progress(),
                 ok = flake_node:kill(A),
                 progress(),
                 ?assert([WorkerA] =/= workers())
         end).

%% The clock is set back for longer than a call may take.
clock_back_for_long(Config) ->
    A = ?config(a, Config),
    Clients = two_clients([a(Config)], 300),
    Before = [ahead_of(0, C) || C <- Clients],
    ok = flake_node:set_clock(A, -3600000),
    [refused_at_last([{a(Config), clock_running_backwards}], C) || C <- Clients],
    ok = flake_node:set_clock(A, 0),
    [true = Id < ahead_of(0, C) || {C, Id} <- lists:zip(Clients, Before)].

%% The ids of the other node would be below those returned before.
other_clock_behind(Config) ->
    {A, B} = {?config(a, Config), ?config(b, Config)},
    Clients = two_clients([flake_node:node(A), flake_node:node(B)], 300),
    ok = flake_node:kill(A),
    ok = flake_node:set_clock(A, 3600000),
    ok = flake_node:start(A), % a running node would not trust this clock yet
    [ahead_of(os:system_time(millisecond) + 3000000, C) || C <- Clients],
    ok = flake_node:start(B),
    ok = flake_node:kill(A),
    [refused_at_last([{flake_node:node(A), nodedown}, {flake_node:node(B), clock_behind}], C) || C <- Clients].

%% --- helpers

a(Config) ->
    case ?config(a, Config) of
        in_process -> in_process;
        A -> flake_node:node(A)
    end.

%% Starts a client that ends with the test.
client(Client, Config, Options) ->
    {ok, Pid} = flake_client:start_link(Client, Options ++ [{nodes, [a(Config)]}, {timeout, 60000}]),
    Pid.

%% Starts a client that asks for each id, and one that has leases.
two_clients(Nodes, Timeout) ->
    [begin
         {ok, _} = flake_client:start_link(Client, [{nodes, Nodes}, {timeout, Timeout}, {lease, Lease}]),
         Client
     end || {Client, Lease} <- [{direct, undefined}, {leasing, #{size => 200}}]].

%% Waits for an id whose time is after Ms.
ahead_of(Ms, Client) ->
    case flake_client:id(Client) of
        {ok, <<Time:64, _:64>> = Id} when Time > Ms -> Id;
        _ -> ahead_of(Ms, Client)
    end.

%% Waits until Ask fails for these reasons; earlier attempts may fail for others.
refused(Failed, Ask) ->
    await(fun() ->
                  {error, {no_node_available, Seen}} = Ask(),
                  [Node || {Node, _} <- Failed] =:= [Node || {Node, _} <- Seen] orelse error({Failed, Seen}),
                  Seen =:= Failed
          end).

%% Like refused, once the client's remaining ids are used up.
refused_at_last(Failed, Client) ->
    await(fun() -> element(1, flake_client:id(Client)) =:= error end),
    refused(Failed, fun() -> flake_client:id(Client) end).

%% Starts a client of a node that the test stands in for.
play(Client, Options) ->
    whereis(played) =:= self() orelse register(played, self()),
    {ok, _} = flake_client:start_link(Client, Options ++ [{nodes, [node()]}, {name, played}, {timeout, 60000}]).

call(Client) ->
    spawn_monitor(fun() -> exit({ids, flake_client:id(Client)}) end).

%% Calls while no other call lasts, and answers.
alone(Client, Answer) ->
    Caller = call(Client),
    answer(asked(get), Answer),
    ended(Caller).

%% Makes N callers send their calls to the client's process before it reads any of them, while
%% another caller waits for its answer.
meet(Client, N) ->
    First = call(Client),
    Get = asked(get),
    ok = sys:suspend(Client),
    Met = [queued(Client, I) || I <- lists:seq(1, N)],
    ok = sys:resume(Client),
    {First, Get, Met}.

%% Returns a caller whose call is message I in the mailbox of the client's process.
queued(Client, I) ->
    Caller = call(Client),
    await(fun() -> process_info(whereis(Client), message_queue_len) =:= {message_queue_len, I} end),
    Caller.

asked(Request) ->
    receive
        {'$gen_call', From, Request} -> From
    after 60000 ->
        error({not_asked, Request, process_info(self(), messages)})
    end.

answer(From, Answer) ->
    gen_server:reply(From, Answer).

kill({Pid, Ref}) ->
    exit(Pid, kill),
    receive {'DOWN', Ref, _, _, killed} -> ok end.

%% Returns new ids, ascending.
ids(N) ->
    [<<(erlang:unique_integer([positive, monotonic])):64, 0:64>> || _ <- lists:seq(1, N)].

one(Client) ->
    {ok, Id} = flake_client:id(Client),
    [Id].

some(Client, N) ->
    {ok, Ids} = flake_client:ids(Client, N),
    N = length(Ids),
    Ids.

workers() ->
    lists:usort([Worker || C <- [direct, leasing], <<_:64, Worker:48, _:16>> <- one(C)]).

%% Many processes take ids while something happens. No call may fail, no id may repeat, and
%% none may be below an earlier one.
load(Happens) ->
    Counter = counters:new(1, []),
    persistent_term:put(progress, Counter),
    Stop = atomics:new(1, []),
    Taker = fun(Take) ->
                    fun() ->
                            Ids = Take(),
                            counters:add(Counter, 1, 1),
                            timer:sleep(1), % otherwise there would be too many ids to sort
                            Ids
                    end
            end,
    Takers = [spawn_monitor(fun() -> exit({ids, lists:append(take_until(Stop, Taker(Take), []))}) end)
              || {Count, Take} <- [{30, fun() -> one(direct) end}, {3, fun() -> one(leasing) end}, {3, fun() -> some(leasing, 30) end},
                                   {3, fun() -> some(direct, 20) end}, {3, fun() -> some(leasing, 300) end}],
                 _ <- lists:seq(1, Count)],
    Happens(),
    atomics:put(Stop, 1, 1),
    unique([ended(T) || T <- Takers]).

take_until(Stop, Take, Taken) ->
    case atomics:get(Stop, 1) of
        1 -> lists:reverse(Taken);
        0 -> take_until(Stop, Take, [Take() | Taken])
    end.

%% Waits until 200 more calls have been answered.
progress() ->
    Counter = persistent_term:get(progress),
    Goal = counters:get(Counter, 1) + 200,
    await(fun() -> counters:get(Counter, 1) >= Goal end).

await(Done) ->
    case Done() of
        true -> ok;
        false -> timer:sleep(5), await(Done)
    end.

parallel(Funs) ->
    [ended(P) || P <- [spawn_monitor(fun() -> exit({ids, lists:append(Fun())}) end) || Fun <- Funs]].

ended({Pid, Ref}) ->
    receive
        {'DOWN', Ref, process, Pid, {ids, Ids}} -> Ids;
        {'DOWN', Ref, process, Pid, Why} -> error(Why)
    end.

%% No id repeats among the callers, and each caller's ids increase.
unique(Lists) ->
    lists:foreach(fun increasing/1, Lists),
    All = lists:append(Lists),
    ?assertEqual(length(All), length(lists:usort(All))).

increasing([A | [B | _] = Rest]) ->
    A < B orelse error({not_increasing, A, B}),
    increasing(Rest);
increasing([_]) ->
    ok.
