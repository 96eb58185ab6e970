%% Callers of a gen_server. For each term {run, Node, Processes, Depth, Milliseconds, Request} on
%% standard input, Processes processes call {flake, Node} for that time. Then one line is printed:
%% calls, nanoseconds, and the latencies, as MICROSECONDS:CALLS. If Depth is above 1, each process
%% keeps that many calls of gen_server:send_request in flight. If Depth is {every, Nanoseconds}, each
%% process makes a call whenever that much time has passed.
-module(bench_caller).
-export([start/0]).

start() ->
    io:format("ready~n"),
    loop().

loop() ->
    case io:read("") of
        {ok, {run, Node, Processes, Depth, Ms, Request}} ->
            io:format("~s~n", [run({flake, Node}, Processes, Depth, Ms, Request)]),
            loop();
        _ -> halt(0)
    end.

run(To, Processes, Depth, Ms, Request) ->
    Latencies = counters:new(slot(infinity), [write_concurrency]),
    Callers = [spawn_monitor(fun() ->
        receive {until, End} -> calls(Depth, To, Request, End, Latencies) end
    end) || _ <- lists:seq(1, Processes)],
    Start = now_ns(),
    [Pid ! {until, Start + Ms * 1000000} || {Pid, _} <- Callers],
    try
        [receive {'DOWN', Ref, process, _, Why} -> Why =:= normal orelse throw(Why) end || {_, Ref} <- Callers],
        Elapsed = now_ns() - Start,
        Seen = [{S, N} || S <- lists:seq(1, slot(infinity)), N <- [counters:get(Latencies, S)], N > 0],
        [io_lib:format("~b ~b", [lists:sum([N || {_, N} <- Seen]), Elapsed]),
         [io_lib:format(" ~b:~b", [us(S), N]) || {S, N} <- Seen]]
    catch
        Why -> io_lib:format("error ~0p", [Why])
    end.

calls(1, To, Request, End, Latencies) ->
    call(To, Request, End, now_ns(), Latencies);
calls({every, Ns}, To, Request, End, Latencies) ->
    regular(Ns, To, Request, End, now_ns() + rand:uniform(Ns), Latencies);
calls(Depth, To, Request, End, Latencies) ->
    pipeline(To, Request, End, queue:from_list([send(To, Request) || _ <- lists:seq(1, Depth)]), Latencies).

call(_, _, End, Now, _) when Now >= End -> ok;
call(To, Request, End, Now, Latencies) ->
    {ok, _} = gen_server:call(To, Request),
    Then = now_ns(),
    counters:add(Latencies, slot((Then - Now) div 1000), 1),
    call(To, Request, End, Then, Latencies).

%% If the previous call delayed a call, its latency counts from when it was due. If only a coarse
%% timer delayed it, its latency counts from when it was made.
regular(_, _, _, End, Due, _) when Due >= End -> ok;
regular(Every, To, Request, End, Due, Latencies) ->
    Began = case Due - now_ns() of
        Wait when Wait > 0 -> timer:sleep((Wait + 999999) div 1000000), now_ns();
        _ -> Due
    end,
    {ok, _} = gen_server:call(To, Request),
    counters:add(Latencies, slot((now_ns() - Began) div 1000), 1),
    regular(Every, To, Request, End, Due + Every, Latencies).

pipeline(To, Request, End, Sent, Latencies) ->
    case queue:out(Sent) of
        {empty, _} -> ok;
        {{value, {Id, At}}, Rest} ->
            {reply, {ok, _}} = gen_server:receive_response(Id, infinity),
            Now = now_ns(),
            counters:add(Latencies, slot((Now - At) div 1000), 1),
            More = if Now < End -> queue:in(send(To, Request), Rest); true -> Rest end,
            pipeline(To, Request, End, More, Latencies)
    end.

send(To, Request) -> {gen_server:send_request(To, Request), now_ns()}.

now_ns() -> erlang:monotonic_time(nanosecond).

%% A slot is 1 microsecond wide up to 2 ms, then 32 microseconds, and 1 ms from 34 ms on.
slot(Us) when Us < 2000 -> 1 + Us;
slot(Us) when Us < 34000 -> 2001 + (Us - 2000) div 32;
slot(Us) when Us < 1034000 -> 3001 + (Us - 34000) div 1000;
slot(_) -> 4001.

us(Slot) when Slot =< 2000 -> Slot - 1;
us(Slot) when Slot =< 3000 -> 2000 + (Slot - 2001) * 32;
us(Slot) -> 34000 + (Slot - 3001) * 1000.
