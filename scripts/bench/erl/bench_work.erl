%% A node that is busy: for each scheduler, two processes build lists and have other processes
%% sort them.
-module(bench_work).
-export([start/0]).

start() -> [spawn(fun() -> work(spawn(fun sorted/0)) end) || _ <- lists:seq(1, 2 * erlang:system_info(schedulers_online))].

work(To) ->
    To ! {self(), [rand:uniform(1000000) || _ <- lists:seq(1, 1000)]},
    receive _ -> work(To) end.

sorted() ->
    receive {From, List} -> From ! lists:sort(List) end,
    sorted().
