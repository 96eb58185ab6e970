#!/usr/bin/env escript
%% Writes vectors.tsv and old-tags.tsv. Each line holds a term as io:format("~0tp") prints it, a tab, and the
%% term's external bytes in hex, without the version byte. Run it in this directory.
%% Pids, references and funs differ from run to run.
-mode(compile).

main(_) ->
    write("vectors.tsv", [term_to_binary(T, [{minor_version, 2}]) || T <- terms()] ++ modern()),
    write("old-tags.tsv", old()).

write(File, Bins) ->
    {ok, F} = file:open(File, [write, {encoding, utf8}]),
    [io:format(F, "~ts\t~s\n", [text(binary_to_term(B)), hex(rest(B))]) || B <- Bins],
    ok = file:close(F).

rest(<<131, R/binary>>) -> R.
hex(B) -> string:lowercase(binary:encode_hex(B)).

%% The first number of a pid, port or reference is an index that only this run knows.
text(T) ->
    S = lists:flatten(io_lib:format("~0tp", [T])),
    lists:flatten(re:replace(S, "(#Ref<|#Port<|<)[0-9]+\\.(?=[0-9.]+>)", "\\g{1}0.", [global, unicode, {return, list}])).

terms() ->
    Self = self(),
    Ref = make_ref(),
    Port = hd(erlang:ports()),
    X = {Self, 42},
    F0 = fun() -> ok end,
    F2 = fun(A, B) -> {A, B, X} end,
    F3 = fun() -> {F2, F0, Ref} end,
    [0, 1, 255, 256, -1, 1000, -1000, 134217727, 134217728, -134217729, 2147483647, 2147483648, -2147483648, -2147483649,
     1 bsl 32, 1 bsl 62, (1 bsl 63) - 1, 1 bsl 63, -(1 bsl 63), -(1 bsl 63) - 1, (1 bsl 64) - 1, 1 bsl 64, -(1 bsl 64),
     1 bsl 2039, (1 bsl 2040) - 1, 1 bsl 2040, (1 bsl 4000) + 12345, -(1 bsl 4000),
     0.0, -0.0, 1.0, -1.0, 1.5, 0.1, 0.01, 0.001, 0.0001, 1.0e-5, 1.234e-5, 123456789.0, 1.0e10, 1.0e15, 1.0e16,
     1.0e20, 1.0e21, 1.0e22, 1.0e23, 1.2e22, 1.0e100, -1.0e-100, 3.141592653589793, 1.7976931348623157e308, 5.0e-324,
     9007199254740991.0, 9007199254740992.0, 9007199254740994.0, 123456789012345.6, 1.0e3, 100000.0, 1.0e6, 1.2345e7, 0.00123,
     2.2250738585072014e-308, 4503599627370496.5, 12345678901234567890.0,
     ok, true, '', 'hello world', 'Hello', hello_World@9, '_x', '9a', '@a', 'a-b', 'don\'t', 'back\\slash', 'new\nline', 'tab\t',
     'nul\0', 'del\177', 'esc\e', '"', 'é', 'École', 'straße', 'x×y', 'x÷y', '÷', 'ÿ', '\x{400}', 'a\x{20ac}b', '\x{1f600}', '日本',
     '\x{80}', '\x{a0}', 'ÿ\x{100}',
     list_to_atom(lists:duplicate(255, $a)), list_to_atom(lists:duplicate(255, 16#20ac)), list_to_atom(lists:duplicate(128, 16#e9)),
     list_to_atom(lists:duplicate(127, 16#e9)),
     'after', 'begin', 'case', 'try', 'cond', 'catch', 'andalso', 'orelse', 'end', 'fun', 'if', 'let', 'of', 'receive', 'when',
     'bnot', 'not', 'div', 'rem', 'band', 'and', 'bor', 'bxor', 'bsl', 'bsr', 'or', 'xor', undefined, query, 'flake@127.0.0.1',
     '$gen_call', 'Elixir.Foo',
     <<>>, <<"abc">>, <<1, 2, 3>>, <<0>>, <<255>>, <<"a\nb\t\"\\">>, <<"é"/utf8>>, <<"é">>, <<"a", 0>>, <<127>>, <<128>>, <<160>>, <<27>>,
     <<16#1a1fad65cec02fc000000010000:120>>, <<"日本"/utf8>>,
     <<1:1>>, <<0:7>>, <<255, 1:3>>, <<"abc", 5:4>>, <<"abc", 0:1>>, <<1, 2, 3, 127:7>>,
     [], "abc", "a\nb\"\\\e\b\f\v\r\t", [0], [1, 2, 3], "é", [127], [128], [160], [255], [256], [$a, 256], [$a, 1024], "BCeuWix931125IgWi",
     "don't", lists:duplicate(300, $a), lists:seq(1, 300),
     [a], [a, b], [[]], [[], []], ["abc", "def"], [$a, b], [a | b], [1, 2 | 3], [$a | $b], [a, [b | c] | d], [alias | Ref], [1.0], [-1], [[[[[]]]]],
     [97, -1], ["a" | b], [<<"a">> | <<"b">>],
     {}, {a}, {a, b}, {{}, {{}}}, {ok, <<1, 2, 3>>}, {ok, "abc"}, {error, badarg}, list_to_tuple(lists:seq(1, 255)), list_to_tuple(lists:seq(1, 256)),
     #{}, #{a => 1}, #{a => 1, b => 2}, #{"list" => {tuple}}, #{{t, 1} => #{}}, #{1 => a, 1.0 => b}, #{[] => [], <<>> => #{x => "y"}}, [#{}, #{}],
     #{self() => make_ref()},
     Self, Ref, Port, [Self, Ref, Port], {Self, [alias | Ref]}, spawn(fun() -> ok end),
     F0, F2, F3, [F3, F3], #{F0 => F2},
     fun lists:map/2, fun 'a b':'C'/0, fun erlang:'+'/2, fun m:f/255, [fun lists:map/2 | fun m:f/1],
     {2, '', Self}, {19, Self, flake, Ref}, {6, Self, '', flake}, {20, Self, flake, Ref}, {21, flake, Self, Ref, normal},
     {'$gen_call', {Self, [alias | Ref]}, get}, {'$gen_call', {Self, [alias | Ref]}, {get, 62}}, {'$gen_call', {Self, Ref}, {is_auth, 'c27@127.0.0.1'}},
     {'$gen_cast', hello}, {[alias | Ref], {ok, <<16#1a1fad65cec02fc000000010000:128>>}}, {Ref, yes}, {35, 1 bsl 63, Self, Self}, {36, 1, Self, Self},
     {29, Ref, Self, Self, {erpc, execute_call, 4}, [monitor]}, [Ref, flake_harness, generate, [1]],
     {badrpc, {'EXIT', {undef, [{m, f, [1], []}]}}},
     {call, erlang, node, [], user}, {'EXIT', Self, normal}, {'DOWN', Ref, process, Self, noproc},
     nest(100)].

nest(0) -> [];
nest(N) -> {[nest(N - 1)]}.

%% Forms in OTP's current documentation that term_to_binary does not produce here.
modern() ->
    Node = <<119, 3, "a@b">>,
    [<<131, 88, Node/binary, 1:32, 2:32, 16#5e5e5e5e:32>>,
     <<131, 89, Node/binary, 5:32, 16#5e5e5e5e:32>>,
     <<131, 120, Node/binary, 16#123456789a:64, 16#5e5e5e5e:32>>,
     <<131, 90, 1:16, Node/binary, 7:32, 1:32>>,
     <<131, 90, 3:16, Node/binary, 7:32, 1:32, 2:32, 3:32>>,
     <<131, 90, 5:16, Node/binary, 7:32, 1:32, 2:32, 3:32, 4:32, 5:32>>].

old() ->
    Node = <<100, 3:16, "a@b">>,
    Float = fun(S) -> <<131, 99, S/binary, 0:((31 - byte_size(S)) * 8)>> end,
    [<<131, 100, 3:16, "abc">>, <<131, 100, 0:16>>, <<131, 100, 2:16, 16#e9, "a">>, <<131, 115, 3, "abc">>, <<131, 115, 1, 16#e9>>,
     <<131, 118, 3:16, "abc">>,
     <<131, 103, Node/binary, 1:32, 2:32, 3>>, <<131, 103, 115, 3, "a@b", 1:32, 2:32, 3>>,
     <<131, 102, Node/binary, 5:32, 1>>, <<131, 101, Node/binary, 5:32, 1>>,
     <<131, 114, 1:16, Node/binary, 1, 7:32>>, <<131, 114, 3:16, Node/binary, 1, 7:32, 8:32, 9:32>>,
     <<131, 114, 5:16, Node/binary, 1, 7:32, 8:32, 9:32, 10:32, 11:32>>,
     Float(<<"1.50000000000000000000e+00">>), Float(<<"-1.00000000000000000000e-10">>), Float(<<"0.1">>),
     <<131, 98, 5:32>>, <<131, 110, 1, 0, 5>>, <<131, 110, 1, 1, 5>>, <<131, 110, 0, 0>>, <<131, 110, 9, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0>>, <<131, 111, 1:32, 1, 7>>,
     <<131, 105, 1:32, 97, 1>>, <<131, 107, 0:16>>, <<131, 108, 0:32, 106>>, <<131, 108, 0:32, 97, 1>>,
     <<131, 108, 1:32, 97, 1, 108, 1:32, 97, 2, 106>>, <<131, 108, 1:32, 97, 1, 108, 1:32, 97, 2, 97, 3>>,
     <<131, 108, 1:32, 97, 1, 107, 2:16, 2, 3>>,
     <<131, 77, 1:32, 8, 65>>, <<131, 77, 1:32, 3, 255>>,
     <<131, 113, 100, 1:16, "m", 100, 1:16, "f", 97, 1>>].
