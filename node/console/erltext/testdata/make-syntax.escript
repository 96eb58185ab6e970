#!/usr/bin/env escript
%% Writes syntax.tsv. Each line holds an input as a string, a tab, and the Erlang shell's error for the input, or
%% ok. Run it in this directory, with OTP 25. The inputs are those of syntax.txt, and more than a thousand made by
%% removing, adding and swapping their characters and tokens. These are random, but the same each time.
-mode(compile).

main(_) ->
    rand:seed(exsss, {1, 2, 3}),
    {ok, Text} = file:read_file("syntax.txt"),
    Inputs = [read(L) || L <- string:split(unicode:characters_to_list(Text), "\n", all), L =/= ""],
    {ok, F} = file:open("syntax.tsv", [write, {encoding, utf8}]),
    [io:format(F, "~ts\t~ts\n", [io_lib:write_string(I), said(I)]) || I <- Inputs ++ random(Inputs)],
    ok = file:close(F).

read(Line) -> {ok, [{string, _, S}], _} = erl_scan:string(Line), S.

said(Input) ->
    {done, Result, _} = scan(Input),
    case Result of
        {ok, Tokens, _} ->
            case erl_eval:extended_parse_exprs(Tokens) of
                {ok, _} -> "ok";
                {error, E} -> said_error(E)
            end;
        {error, E, _} -> said_error(E);
        {eof, _} -> "eof"
    end.

scan(Input) ->
    case erl_scan:tokens([], Input, {1, 1}, [text]) of
        {more, More} -> erl_scan:tokens(More, eof, {1, 1}, [text]);
        Done -> Done
    end.

said_error({{Line, Column}, Module, What}) -> io_lib:format("~w:~w: ~ts", [Line, Column, Module:format_error(What)]).

random(Inputs) -> lists:usort([mutated(lists:nth(rand:uniform(length(Inputs)), Inputs)) || _ <- lists:seq(1, 1500)]) -- Inputs.

mutated(S) ->
    {A, B} = lists:split(rand:uniform(length(S) + 1) - 1, S),
    case {rand:uniform(3), B} of
        {1, [_ | T]} -> A ++ T;
        {2, _} -> A ++ piece() ++ B;
        {_, [C, D | T]} -> A ++ [D, C | T];
        _ -> A ++ B
    end.

piece() ->
    Pieces = ["(", ")", "[", "]", "{", "}", "<<", ">>", ",", "|", "||", ":", "=", "=>", "#", ".", " . ", " ", "\n", "-", "+", "a", "X", "1",
              "'b c'", "\"s\"", "$c", "1.5", "16#f", "\\", "'", "\"", "%", "of", "end", "fun", "é", "\x{400}", "/", "::", "_", "$", "?"],
    lists:nth(rand:uniform(length(Pieces)), Pieces).
