#!/usr/bin/env escript
%% Makes 16 processes call the node until the end of standard input. The ids must be unique, and
%% ascend for each process, whatever happens to the node in the meantime.
%%
%%     load.escript COOKIE
-mode(compile).

-define(node, 'flake@127.0.0.1').

main([Cookie]) ->
    {ok, _} = net_kernel:start(['load@127.0.0.1', longnames]),
    erlang:set_cookie(node(), list_to_atom(Cookie)),
    net_adm:ping(?node) =:= pong orelse exit({node, down}),
    io:put_chars("calling\n"),
    Callers = [spawn_monitor(fun() -> call([], 0, 0, now_ms()) end) || _ <- lists:seq(1, 16)],
    eof = io:get_line(""),
    All = [begin Pid ! stop, receive {'DOWN', Ref, _, _, Result} -> Result end end || {Pid, Ref} <- Callers],
    Ids = lists:append([I || {I, _, _} <- All]),
    Twice = length(Ids) - length(lists:usort(Ids)),
    Fell = length([I || {I, _, _} <- All, lists:reverse(lists:sort(I)) =/= I]),
    io:format("~b ids, ~b twice, ~b callers out of order, ~b calls failed, longest gap ~b ms~n",
              [length(Ids), Twice, Fell, lists:sum([F || {_, F, _} <- All]), lists:max([G || {_, _, G} <- All])]),
    halt(case {Ids, Twice, Fell} of {[_ | _], 0, 0} -> 0; _ -> 1 end).

%% A caller. It exits with its ids (the last first), the number of failed calls, and the longest
%% time between two ids in ms.
call(Ids, Failed, Gap, Last) ->
    receive stop -> exit({Ids, Failed, Gap}) after 1 -> ok end,
    try gen_server:call({flake, ?node}, get) of
        {ok, Id} ->
            Now = now_ms(),
            call([Id | Ids], Failed, max(Gap, Now - Last), Now)
    catch
        exit:_ ->
            timer:sleep(50),
            call(Ids, Failed + 1, Gap, Last)
    end.

now_ms() -> erlang:monotonic_time(millisecond).
