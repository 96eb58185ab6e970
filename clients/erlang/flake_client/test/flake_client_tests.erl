%% Tests that need no node.
-module(flake_client_tests).
-include_lib("eunit/include/eunit.hrl").

options_test_() ->
    N = {nodes, [a@h]},
    [?_assertMatch({Options, {error, {bad_option, Key, _, _}}}, {Options, flake_client:start_link(c, Options)})
     || {Key, Options} <- [{nodes, []},
                           {nodes, [{nodes, []}]},
                           {nodes, [{nodes, a@h}]},
                           {nodes, [{nodes, ["a@h"]}]},
                           {nodes, [{nodes, [a@h, b@h, a@h]}]},
                           {nodes, [{nodes, [a | b]}]},
                           {nodes, [{nodes, [list_to_atom(integer_to_list(I)) || I <- lists:seq(1, 101)]}]},
                           {name, [N, {name, "flake"}]},
                           {timeout, [N, {timeout, 0}]},
                           {timeout, [N, {timeout, infinity}]},
                           {timeout, [N, {timeout, 3600001}]},
                           {lease, [N, {lease, 100}]},
                           {size, [N, {lease, [{size, 0}]}]},
                           {size, [N, {lease, #{size => 1048577}}]},
                           {max_age, [N, {lease, #{max_age => 0}}]},
                           {max_age, [N, {lease, #{max_age => 60001}}]},
                           {age, [N, {lease, #{age => 5}}]},
                           {server, #{nodes => [a@h], server => flake}},
                           {options, nodes}]].

defaults_test() ->
    ?assertEqual({ok, #{nodes => [a@h], name => flake, timeout => 5000, lease => undefined}},
                 flake_client_options:check([{nodes, [a@h]}])),
    ?assertEqual({ok, #{nodes => [a@h], name => orders, timeout => 9, lease => #{size => 1000, max_age => 100}}},
                 flake_client_options:check(#{nodes => [a@h], name => orders, timeout => 9, lease => #{}})).

not_started_test() ->
    ?assertEqual({error, {not_started, nobody}}, flake_client:id(nobody)),
    ?assertEqual({error, {not_started, nobody}}, flake_client:ids(nobody, 3)),
    ?assertEqual({error, {not_started, nobody}}, flake_client:notional(nobody, 3)).

%% The calls fail immediately, although their timeout is an hour.
not_alive_test_() ->
    [{timeout, 60,
      fun() ->
             {ok, Client} = flake_client:start_link([{nodes, [a@h, b@h]}, {timeout, 3600000}, {lease, Lease}]),
             Refused = {error, {no_node_available, [{a@h, not_alive}, {b@h, not_alive}]}},
             ?assertEqual(Refused, flake_client:id()),
             ?assertEqual(Refused, flake_client:ids(10)),
             ?assertEqual(Refused, flake_client:ids(10000)),
             ?assertEqual(Refused, flake_client:decompose("1")),
             gen_server:stop(Client)
      end} || Lease <- [undefined, #{}]].

arguments_test_() ->
    [?_assertEqual({error, badarg}, Bad)
     || Bad <- [flake_client:id(1), flake_client:id(63), flake_client:id("62"), flake_client:id(c, 62.0),
                flake_client:ids(0), flake_client:ids(-1), flake_client:ids(1.0), flake_client:ids("1"),
                flake_client:ids(1, 1), flake_client:ids(c, 0), flake_client:ids(c, 1, 63),
                flake_client:id(canonical, 62), flake_client:ids(uuid, 2), flake_client:id(ulid, 2), flake_client:id(62, 62),
                flake_client:to_text(<<1:128>>, 63), flake_client:to_text(<<1:72>>, 62), flake_client:to_text("1", 62),
                flake_client:with_meta(<<1:80>>, 256), flake_client:with_meta(<<1:80>>, -1),
                flake_client:with_meta(<<1:80>>, "7"), flake_client:with_meta(<<1:128>>, 7),
                flake_client:time(<<1:64>>), flake_client:time(<<1:64>>, -1), flake_client:time(<<1:64>>, 0, 23), flake_client:time(<<1:64>>, 0, -1),
                flake_client:time(<<1:128>>, 0)]] ++
    [?_assertMatch({error, {bad_option, client, Name, _}}, flake_client:start_link(Name, [{nodes, [in_process]}]))
     || Name <- [canonical, crockford, uuid, ulid]].

lease_test_() ->
    Id = fun(Bits, N) -> <<N:Bits>> end,
    Cases = [{Bits, N} || Bits <- [64, 80, 128], N <- [0, 1 bsl 40, (1 bsl 60) + 7]],
    [fun() ->
             {ok, Runs} = flake_client_run:from_lease(5, [{Id(Bits, N), 3}, {Id(Bits, N + 9), 2}]),
             Ids = [Id(Bits, N + I) || I <- [0, 1, 2, 9, 10]],
             ?assertEqual(Ids, flake_client_run:ids(Runs)),
             ?assertEqual({hd(Ids), lists:last(Ids), 5},
                          {flake_client_run:first(Runs), flake_client_run:last(Runs), flake_client_run:count(Runs)}),
             [begin
                  {Taken, Left} = flake_client_run:split(K, Runs),
                  ?assertEqual(lists:split(K, Ids), {flake_client_run:ids(Taken), flake_client_run:ids(Left)})
              end || K <- lists:seq(1, 5)],
             ?assertEqual(short, flake_client_run:split(6, Runs))
     end || {Bits, N} <- Cases] ++
    [?_assertEqual({Bad, error}, {Bad, flake_client_run:from_lease(N, Bad)})
     || {N, Bad} <- [{1, []}, {1, ok}, {1, <<1:128>>}, {1, [<<1:128>>]}, {1, [{<<1:128>>, 0}]}, {1, [{<<1:128>>, 1.0}]},
                     {1, [{<<1:127>>, 1}]}, {1, [{1, 1}]}, {1, [{<<1:128>>, 1} | x]}, {1, [{<<1:128>>, 1}, x]},
                     {2, [{<<-1:64>>, 2}]}, {2, [{<<-1:64, 0:64>>, 2}]},
                     {2, [{<<16#FFFF:80>>, 2}]}, {2, [{<<16#FFFF:128>>, 2}]}, {2, [{<<1:16, -1:48, 0:64>>, 2}]},
                     {2, [{<<1:128>>, 1}]}, {2, [{<<1:128>>, 3}]}, {2, [{<<1:128>>, 1}, {<<1:64>>, 1}]},
                     {1, [{<<1:128>>, -1}, {<<2:128>>, 2}]}]] ++
    [?_assertEqual({Size, error}, {Size, flake_client_run:from_lease(1, [{<<1:Size/unit:8>>, 1}])})
     || Size <- [0, 6, 7, 9, 11, 15, 17, 32]].

%% Leased ids of uuidv7 increase in the bits before the worker, and have their own random bits.
halves_test() ->
    First = <<16#019fdd9eeeed:48, 7:4, 0:12, 2:2, 9:48, 5:14>>,
    {ok, Runs} = flake_client_run:from_lease(1000, [{First, 1000}]),
    ?assertEqual({First, <<16#019fdd9eeeed:48, 7:4, 999:12, 2:2, 9:48, 5:14>>},
                 {flake_client_run:first(Runs), flake_client_run:last(Runs)}),
    Ids = flake_client_run:ids(Runs),
    ?assertEqual([{7, Sequence, 2, 9} || Sequence <- lists:seq(0, 999)],
                 [{Version, Sequence, Variant, Worker}
                  || <<16#019fdd9eeeed:48, Version:4, Sequence:12, Variant:2, Worker:48, _:14>> <- Ids]),
    ?assert(length(lists:usort([Random || <<_:114, Random:14>> <- Ids])) > 500),
    ?assertEqual({ok, 16#019fdd9eeeed}, flake_client:time(First)).

%% All 16 random bits of a leased ulid are its own. In a uuidv7, the first two would be the worker's.
ulid_random_test() ->
    {ok, Runs} = flake_client_run:from_lease(200, [{<<16#019fdd9eeeed:48, 0:16, 9:48, 5:16>>, 200}]),
    Bits = [Random || <<16#019fdd9eeeed:48, _:16, 9:48, Random:16>> <- flake_client_run:ids(Runs)],
    ?assertEqual(200, length(Bits)),
    ?assertEqual(16#FFFF, lists:foldl(fun(Random, Changed) -> Changed bor (Random bxor 5) end, 0, Bits)).

%% In each base, the text of an id is read as the same id.
text_test() ->
    [begin
         {ok, Text} = flake_client:to_text(Id, Base),
         ?assertEqual({Base, {ok, Id}}, {Base, flake_client:from_text(Text, Base, byte_size(Id))}),
         ?assertEqual({Base, {ok, Id}}, {Base, flake_client:from_text(list_to_binary(Text), Base, byte_size(Id))}),
         ?assert(is_integer(Base) andalso (length(Text) =:= 1 orelse hd(Text) =/= $0) orelse is_atom(Base))
     end || Base <- [canonical, crockford, uuid, ulid | lists:seq(2, 62)], Bits <- [64, 80, 128],
            N <- [0, 1, 61, 62, (1 bsl 59) - 1, 1 bsl 59, 16#1A1FB177DEE7A0078FFE3D40000, (1 bsl 112) - 1, (1 bsl 128) - 1],
            Id <- [<<N:Bits>>], flake_client:to_text(Id, Base) =/= {error, badarg}].

%% The UUID form and the ULID of an id from the ULID specification. The id has no canonical text, and ids
%% of other sizes have neither form.
forms_test_() ->
    Spec = "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    Id = <<16#01563e3ab5d3d6764c61efb99302bd5b:128>>,
    [?_assertEqual({ok, Id}, flake_client:from_text(Spec, ulid)),
     ?_assertEqual({ok, Id}, flake_client:from_text(string:lowercase(Spec), ulid)),
     ?_assertEqual({ok, Spec}, flake_client:to_text(Id, ulid)),
     ?_assertEqual({ok, "01563e3a-b5d3-d676-4c61-efb99302bd5b"}, flake_client:to_text(Id, uuid)),
     ?_assertEqual({ok, Id}, flake_client:from_text(<<"01563E3A-B5D3-D676-4C61-EFB99302BD5B">>, uuid)),
     ?_assertEqual({ok, 1469922850259}, flake_client:time(Id)),
     ?_assertEqual({ok, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"}, flake_client:to_text(<<-1:128>>, ulid)),
     ?_assertEqual({ok, Spec}, flake_client:to_text(Id, crockford)),
     ?_assertEqual({ok, "0S9RQYWYD6W05"}, flake_client:to_text(<<911723800210665477:64>>, crockford)),
     ?_assertEqual({ok, "7R4WR9KR0400E009"}, flake_client:to_text(<<292967453211759932276745:80>>, crockford)),
     ?_assertEqual({error, badarg}, flake_client:to_text(Id, canonical))] ++
    [?_assertEqual({error, badarg}, flake_client:to_text(<<1:Size/unit:8>>, Base)) || Size <- [8, 10], Base <- [uuid, ulid]].

with_meta_test() ->
    ?assertEqual([{ok, <<-1:40, Meta, -1:32>>} || Meta <- [0, 7, 255]],
                 [flake_client:with_meta(<<-1:80>>, Meta) || Meta <- [0, 7, 255]]).

%% The text and the time of ids from a node and from muyo/sno.
canonical_test_() ->
    [?_assertEqual({{ok, Text}, {ok, Id}, {ok, Time}}, {flake_client:to_text(Id, canonical), flake_client:from_text(Text, canonical, byte_size(Id)), When(Id)})
     || {Text, Id, Time, When} <-
            [{"0000BCfh7uXSbGCFYUHkcy", <<0,0,1,161,253,217,238,237,70,56,249,67,60,141,0,0>>, 1795260280557, fun flake_client:time/1},
             {"22222224hxxxxxxu", <<16#00000000027ffffffffc:80>>, 1262304000004, fun flake_client:time/1},
             {"22222225xu222225", <<16#0000000003ff00000003:80>>, 1262304000004, fun flake_client:time/1},
             {"xxxxxxxxxxxxxxxx", <<-1:80>>, 1262304000000 + 4 * ((1 bsl 39) - 1), fun flake_client:time/1},
             {"911936766637928448", <<12,167,217,168,89,18,112,0>>, 1577836800000 + 911936766637928448 div 4194304,
              fun(Id) -> flake_client:time(Id, 1577836800000) end},
             {"911936766637928448", <<12,167,217,168,89,18,112,0>>, 1577836800000 + 911936766637928448 div 131072,
              fun(Id) -> flake_client:time(Id, 1577836800000, 17, 46) end}]].

%% What nodes, and the other clients, read texts as. Ids of uuidv7 do not show their format, so any UUID is read.
read_test_() ->
    {ok, File} = file:read_file("../../../flake/testdata/read.tsv"),
    [?_assertEqual({Line, Want}, {Line, read(Row)})
     || <<C, _/binary>> = Line <- binary:split(File, <<"\n">>, [global]), C =/= $#,
        [Format, _, _, _, Hex, Time] = Row <- [binary:split(Line, <<"\t">>, [global])],
        Want <- [case Hex of <<"-">> -> none; _ -> {Hex, Time} end],
        Format =/= <<"uuidv7">> orelse Want =/= none].

read([Format, Layout, Name, Text, _, _]) ->
    Size = case Format of <<"sno">> -> 10; _ when Layout =/= <<"-">> -> 8; _ -> 16 end,
    Base = case {Name, Format} of
               {<<"canonical">>, <<"uuidv7">>} -> uuid;
               {<<"canonical">>, <<"ulid">>} -> ulid;
               {<<C, _/binary>>, _} when C =< $9 -> binary_to_integer(Name);
               _ -> binary_to_atom(Name, utf8)
           end,
    Read = flake_client:from_text(unicode:characters_to_list(Text), Base, Size),
    ?assertEqual(Read, flake_client:from_text(Text, Base, Size)),
    case Read of
        {ok, Id} when Size =:= 8 ->
            [Bits, Machine, Sequence, Epoch] = [binary_to_integer(N) || N <- binary:split(Layout, <<" ">>, [global])],
            shown(Id, flake_client:time(Id, Epoch, Machine + Sequence, Bits));
        {ok, Id} -> shown(Id, flake_client:time(Id));
        {error, badarg} -> none
    end.

shown(_, {error, badarg}) -> none;
shown(Id, {ok, Ms}) ->
    {list_to_binary([io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= Id]), integer_to_binary(Ms)}.

no_text_test_() ->
    [?_assertEqual({Text, Base, Size, {error, badarg}}, {Text, Base, Size, flake_client:from_text(Text, Base, Size)})
     || {Text, Base, Size} <-
            [{"", 62, 16}, {"!", 62, 16}, {"2", 2, 16}, {"a", 36, 16}, {17, 62, 16}, {"1" ++ x, 62, 16}, {[300], 62, 16}, {"1", 63, 16},
             {"1", 62, 9}, {lists:duplicate(22, $z), 62, 16}, {lists:duplicate(23, $0), 62, 16}, {"18446744073709551616", 10, 8},
             {"BCfh7uXSbGCFYUHkcy", canonical, 16}, {"edit", canonical, 16}, {"edit", canonical, 10}, {"edit", canonical, 8},
             {lists:duplicate(16, $y), canonical, 10}, {lists:duplicate(16, $X), canonical, 10},
             {"0123456-78901-2345-6789-0123456789ab", canonical, 16}, {"012345678-9012-3456-7890-123456789ab", canonical, 16},
             {"01234567-8901-2345-6789-0123456789ag", canonical, 16}, {lists:duplicate(22, $7), canonical, 16},
             {"01563e3a-b5d3-d676-4c61-efb99302bd5b", canonical, 16}, {"01563e3ab5d3d6764c61efb99302bd5b", uuid, 16},
             {"8ZZZZZZZZZZZZZZZZZZZZZZZZZ", ulid, 16}, {"G000000000000", crockford, 8}, {"000000000000", crockford, 8}, {"0000000000000", crockford, 10}, {"01ARZ3NDEKTSV4RRFFQ69G5FAU", ulid, 16}, {"01ARZ3NDEKTSV4RRFFQ69G5FA", ulid, 16},
             {"01ARZ3NDEKTSV4RRFFQ69G5FA" ++ [16#17F], ulid, 16}, {"01ARZ3NDEKTSV4RRFFQ69G5FAV", ulid, 10}, {"01ARZ3NDEKTSV4RRFFQ69G5FAI", ulid, 16}]].

%% Each step is a node, its id, and whether the id is admitted after the previous steps.
order_test_() ->
    Flake = fun(Ms, Worker, Sequence) -> <<Ms:64, Worker:48, Sequence:16>> end,
    [fun() ->
             Order = flake_client_order:open(make_ref()),
             [begin
                  ?assertEqual({Node, Id, Admitted},
                               {Node, Id, flake_client_order:admits(flake_client_order:mark(Order), Node, Id)}),
                  Admitted andalso flake_client_order:raise(Order, Node, Id)
              end || {Node, Id, Admitted} <- Steps]
     end || Steps <- [[{1, Flake(5, 9, 0), true}, {1, Flake(5, 9, 1), true}, {1, Flake(4, 9, 2), false},
                       {2, Flake(5, 10, 2), false}, {2, Flake(6, 8, 0), true}, {1, Flake(6, 9, 0), false}],
                      [{1, <<5:48, 7:80>>, true}, {2, <<5:48, 8:80>>, false}, {2, <<6:48, 0:80>>, true}],
                      [{1, <<1:48, 7:16>>, true}, {2, <<1:48, 8:16>>, false}, {2, <<2:48, 0:16>>, true}],
                      [{1, <<1:48, 7:32>>, true}, {2, <<1:48, 8:32>>, false}, {2, <<2:48, 0:32>>, true}]]].

%% Overlapping calls got ids of the same millisecond from two nodes: no more ids of that
%% millisecond are admitted from either.
order_of_overlapping_test() ->
    Order = flake_client_order:open(?FUNCTION_NAME),
    flake_client_order:raise(Order, 1, <<5:64, 9:48, 0:16>>),
    flake_client_order:raise(Order, 2, <<5:64, 8:48, 0:16>>),
    Mark = flake_client_order:mark(Order),
    [?assertNot(flake_client_order:admits(Mark, Node, <<5:64, 9:48, 1:16>>)) || Node <- [1, 2]],
    Order = flake_client_order:open(?FUNCTION_NAME),
    ?assertNot(flake_client_order:admits(flake_client_order:mark(Order), 1, <<5:64, 9:48, 1:16>>)),
    ?assert(flake_client_order:admits(flake_client_order:mark(Order), 1, <<6:64, 9:48, 0:16>>)).
