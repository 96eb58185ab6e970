#!/usr/bin/env escript
%% Writes pretty.tsv: column, width and depth, a term on one line, and the lines that the Erlang shell prints
%% for it, a tab between all. Run it in this directory, with OTP 25. Terms are random, but the same each time.
-mode(compile).

main(_) ->
    rand:seed(exsss, {1, 2, 3}),
    {ok, F} = file:open("pretty.tsv", [write, {encoding, utf8}]),
    Shell = {1, 80, 30},
    [write(F, Shell, T) || T <- fixed()],
    [write(F, Shell, T) || T <- ids()],
    [write(F, Shell, random(N)) || N <- lists:seq(2, 60)],
    [write(F, {1 + rand:uniform(30), 60 + rand:uniform(60), rand:uniform(40)}, random(N)) || N <- lists:seq(2, 50)],
    [write(F, {1, 80, rand:uniform(10)}, bytes()) || _ <- lists:seq(1, 100)],
    ok = file:close(F).

write(F, {Column, Width, Depth}, T) ->
    Options = [{column, Column}, {line_length, Width}, {depth, Depth}, {line_max_chars, 60}, {strings, true}, {encoding, unicode}],
    Lines = string:replace(lists:flatten(io_lib_pretty:print(T, Options)), "\n", "\t", all),
    io:format(F, "~w ~w ~w\t~0tp\t~ts\n", [Column, Width, Depth, T, Lines]).

fixed() ->
    [ok, 'hello world', 'Ж', 1, -1, 1 bsl 300, 1.5, <<>>, [], {}, #{}, "", [[]], {[]}, "abc", "é", [1024], [$a, 1024], 'a\x{85}b', maybe,
     <<"é"/utf8>>, <<"é">>, <<"日本"/utf8>>, <<255>>, <<128>>, <<195>>, <<"é", 0>>, <<5:3>>, <<1, 2, 3:5>>, <<"abc", 1:1>>,
     {ok, <<0, 0, 1, 161, 254, 97, 200, 239, 2, 66, 172, 17, 0, 2, 0, 0>>},
     #{a => 1, b => [1, 2, 3]}, #{{a, b} => #{"x" => <<1>>}}, {a}, {"a", b}, {1, 2}, [a | b], [a, b | "cd"], [{a, 1} | {b, 2}]] ++
    [lists:seq(1, N) || N <- [20, 25, 28, 29, 30, 31, 40, 100]] ++
    [lists:seq(1000, 1000 + N) || N <- [10, 11, 12, 13, 14, 15, 29, 30, 100]] ++
    [list_to_tuple(lists:seq(1, N)) || N <- [20, 25, 28, 29, 30, 31, 40]] ++
    [list_to_binary(lists:seq(0, N)) || N <- lists:seq(1, 40)] ++
    [list_to_binary(lists:duplicate(N, 200 + N rem 10)) || N <- [10, 14, 15, 16, 17, 28, 29, 30, 31]] ++
    [binary:copy(<<1>>, N) || N <- lists:seq(20, 32)] ++
    [binary:copy(<<"x">>, N) || N <- [10, 50, 60, 70, 80, 115, 116, 117, 200]] ++
    [binary:copy(<<"é"/utf8>>, N) || N <- [10, 50, 57, 58, 59, 115, 116, 117, 200]] ++
    [<<(binary:copy(<<"x">>, N))/binary, 0>> || N <- [1, 28, 29, 30, 31, 115, 116, 117]] ++
    [<<(binary:copy(<<"é"/utf8>>, N))/binary, 0>> || N <- [1, 28, 29, 30, 31, 57, 58, 59, 116, 117]] ++
    [lists:duplicate(N, $y) || N <- [10, 56, 57, 58, 59, 60, 61, 75, 80, 200]] ++
    [{ok, lists:duplicate(N, $y)} || N <- [50, 51, 52, 53, 54, 60, 70, 80]] ++
    [[lists:duplicate(N, $y), b] || N <- [50, 51, 52, 53, 54, 60, 70, 80]] ++
    [{ok, binary:copy(<<7>>, N)} || N <- lists:seq(20, 32)] ++
    [nested(N) || N <- [5, 10, 20, 27, 28, 29, 30, 31, 40]] ++
    [maps:from_list([{I, I * I} || I <- lists:seq(1, N)]) || N <- [3, 5, 10, 20, 28, 29, 30, 31]] ++
    [maps:from_list([{lists:duplicate(I, $k), lists:seq(1, I)} || I <- lists:seq(1, N)]) || N <- [5, 20, 30]] ++
    [[{list_to_atom(lists:duplicate(N, $t)), lists:seq(100, 125)}] || N <- lists:seq(1, 60)] ++
    [improper(N) || N <- [3, 20, 28, 29, 30, 31]].

nested(0) -> x;
nested(N) when N rem 3 =:= 0 -> {level, nested(N - 1)};
nested(N) when N rem 3 =:= 1 -> [nested(N - 1)];
nested(N) -> #{N => nested(N - 1)}.

improper(N) -> lists:foldl(fun(I, T) -> [I + 1000 | T] end, tail, lists:seq(1, N)).

%% What the prompt of this node prints most: lists of ids.
ids() ->
    [[id(Kind) || _ <- lists:seq(1, N)] || Kind <- [10, 16, 36, 62, binary, text, tuple], N <- [1, 2, 3, 4, 5, 7, 10, 29, 30, 31, 100]].

id(binary) -> <<1642000000000:64, 16#024200000002:48, (rand:uniform(9)):16>>;
id(text) -> integer_to_binary(value(), 36);
id(tuple) -> {ok, id(binary)};
id(62) -> [lists:nth(rand:uniform(62), lists:seq($0, $9) ++ lists:seq($A, $Z) ++ lists:seq($a, $z)) || _ <- lists:seq(1, 18)];
id(Base) -> integer_to_list(value(), Base).

value() -> binary:decode_unsigned(id(binary)).

%% random(N) is a term of about N leaves.
random(N) when N < 2 -> leaf();
random(N) ->
    Parts = parts(N - 1),
    case rand:uniform(10) of
        K when K < 4 -> [random(P) || P <- Parts];
        4 -> lists:foldl(fun(P, T) -> [random(P) | T] end, leaf(), Parts);
        K when K < 7 -> list_to_tuple([random(P) || P <- Parts]);
        K when K < 9 -> list_to_tuple([atom() | [random(P) || P <- Parts]]);
        _ -> maps:from_list([{random(min(P, rand:uniform(3))), random(P)} || P <- Parts])
    end.

parts(0) -> [];
parts(N) ->
    P = rand:uniform(N),
    [P | parts(N - P)].

leaf() ->
    case rand:uniform(12) of
        K when K < 4 -> atom();
        4 -> rand:uniform(10) - 5;
        5 -> rand:uniform(1000000000000);
        6 -> rand:uniform() * 100;
        7 -> text(rand:uniform(10));
        8 -> text(rand:uniform(70));
        9 -> list_to_binary(text(rand:uniform(40)));
        10 -> rand:bytes(rand:uniform(35));
        11 -> <<(rand:bytes(rand:uniform(5)))/binary, 1:(rand:uniform(7))>>;
        12 -> lists:nth(rand:uniform(4), [[], {}, #{}, <<>>])
    end.

%% Text in UTF-8, text in Latin-1 and what is neither.
bytes() ->
    Parts = [<<"x">>, <<"a">>, <<"bcd">>, <<"efghi">>, <<"é"/utf8>>, <<"Ш"/utf8>>, <<"é">>, <<0>>, <<200, 180>>],
    list_to_binary([lists:nth(min(rand:uniform(12), 9), Parts) || _ <- lists:seq(1, rand:uniform(20))]).

atom() -> list_to_atom([$a + rand:uniform(25) || _ <- lists:seq(1, lists:nth(rand:uniform(4), [2, 4, 8, rand:uniform(30)]))]).

text(N) -> [lists:nth(rand:uniform(9), "ab c\n\"\\é9") || _ <- lists:seq(1, N)].
