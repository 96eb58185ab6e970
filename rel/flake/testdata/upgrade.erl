%% Callers that take ids with the client library from two nodes while both are upgraded.
%% -extra FOLDER CALLERS NODE...: each caller writes what it receives to a file in the
%% folder, 16 bytes of id and 8 of the time in us. They end when there is a file "stop".
-module(upgrade).
-export([main/0]).

main() ->
    [Folder, Callers | Nodes] = init:get_plain_arguments(),
    {ok, _} = flake_client:start_link([{nodes, [list_to_atom(N) || N <- Nodes]}]),
    All = [spawn_monitor(fun() -> caller(filename:join(Folder, integer_to_list(I))) end) || I <- lists:seq(1, list_to_integer(Callers))],
    await(fun() -> filelib:wildcard("*", Folder) end, length(All)),
    io:format("CALLING~n"),
    await(fun() -> filelib:wildcard("stop", Folder) end, 1),
    [Pid ! stop || {Pid, _} <- All],
    Failed = [Why || {Pid, Ref} <- All, Why <- receive {'DOWN', Ref, process, Pid, {failed, Reasons}} -> Reasons end],
    io:format("FAILED ~b ~0p~n", [length(Failed), lists:usort(Failed)]),
    halt().

await(Files, N) ->
    case length(Files()) of
        N -> ok;
        _ -> timer:sleep(50), await(Files, N)
    end.

%% The file is created once there is a first id.
caller(File) ->
    First = flake_client:id(),
    {ok, F} = file:open(File, [write, raw, binary, delayed_write]),
    Failed = take(F, First, []),
    ok = file:close(F),
    exit({failed, Failed}).

take(F, Answer, Failed) ->
    Now = case Answer of
        {ok, Id} ->
            ok = file:write(F, <<Id/binary, (erlang:monotonic_time(microsecond)):64>>),
            Failed;
        {error, Why} -> [Why | Failed]
    end,
    receive stop -> Now
    after 1 -> take(F, flake_client:id(), Now)
    end.
