%% @private
%% Ids as text: numbers in a base, as a node writes them for {get, Base}, and the
%% canonical text of each format, which an id's size tells.
-module(flake_client_text).

-export([is_base/1, encode/2, decode/3]).

-define(IS_BASE(B), is_integer(B), B >= 2, B =< 62).
-define(IS_SIZE(S), (S =:= 8 orelse S =:= 10 orelse S =:= 16)).

-spec is_base(term()) -> boolean().
is_base(canonical) -> true;
is_base(Base) -> is_integer(Base) andalso Base >= 2 andalso Base =< 62.

%% Of a base digits are 0-9A-Za-z in that order, without padding.
-spec encode(flake_client:id(), flake_client:base()) -> string().
encode(<<Id:128>>, canonical) ->
    Text = digits(Id, 62, []),
    lists:duplicate(22 - length(Text), $0) ++ Text;
encode(<<Id:10/binary>>, canonical) ->
    [five(V) || <<V:5>> <= Id];
encode(Id, canonical) ->
    encode(Id, 10);
encode(Id, Base) when Base =< 36 ->
    integer_to_list(binary:decode_unsigned(Id), Base);
encode(Id, Base) ->
    digits(binary:decode_unsigned(Id), Base, []).

%% The reverse, for ids of a size in bytes; as a node reads text.
-spec decode(term(), term(), term()) -> {ok, flake_client:id()} | error.
decode(Text, Base, Size) when is_binary(Text) ->
    decode(binary_to_list(Text), Base, Size);
decode(Text, Base, Size) when ?IS_SIZE(Size) ->
    try read(Text, Base, Size) of
        Id -> {ok, Id}
    catch
        throw:none -> error;
        error:_ -> error % it is no text
    end;
decode(_, _, _) ->
    error.

read(Text, Base, Size) when ?IS_BASE(Base) ->
    (Text =/= [] andalso length(Text) =< length(encode(highest(Size), Base))) orelse throw(none),
    case number(Text, Base) of
        Id when Id < 1 bsl (Size * 8) -> <<Id:Size/unit:8>>;
        _ -> throw(none)
    end;
read(Text, canonical, 8) ->
    read(Text, 10, 8);
read(Text, canonical, 10) when length(Text) =:= 16 ->
    << <<(unfive(C)):5>> || C <- Text >>;
read(Text, canonical, 16) when length(Text) =:= 22 ->
    read(Text, 62, 16);
read(Text, canonical, 16) when length(Text) =:= 36 ->
    [8, 4, 4, 4, 12] = [length(Group) || Group <- string:split(Text, "-", all)],
    read(string:uppercase([C || C <- Text, C =/= $-]), 16, 16);
read(_, _, _) ->
    throw(none).

highest(Size) -> <<-1:Size/unit:8>>.

number(Text, Base) ->
    lists:foldl(fun(C, N) ->
                        case value(C) of
                            V when V < Base -> N * Base + V;
                            _ -> throw(none)
                        end
                end, 0, Text).

%% Nine digits at a time are split off, as those are a word and not a bignum.
digits(N, Base, Text) when N < 1 bsl 59 ->
    word(N, Base, Text);
digits(N, Base, Text) ->
    Nine = Base * Base * Base * Base * Base * Base * Base * Base * Base,
    digits(N div Nine, Base, nine(9, N rem Nine, Base, Text)).

word(N, Base, Text) when N < Base -> [digit(N) | Text];
word(N, Base, Text) -> word(N div Base, Base, [digit(N rem Base) | Text]).

nine(0, 0, _, Text) -> Text;
nine(I, N, Base, Text) -> nine(I - 1, N div Base, Base, [digit(N rem Base) | Text]).

digit(D) when D < 10 -> $0 + D;
digit(D) when D < 36 -> $A + D - 10;
digit(D) -> $a + D - 36.

value(C) when C >= $0, C =< $9 -> C - $0;
value(C) when C >= $A, C =< $Z -> C - $A + 10;
value(C) when C >= $a, C =< $z -> C - $a + 36;
value(_) -> throw(none).

%% sno's digits of 5 bits.
five(V) when V < 8 -> $2 + V;
five(V) -> $a + V - 8.

unfive(C) when C >= $2, C =< $9 -> C - $2;
unfive(C) when C >= $a, C =< $x -> C - $a + 8;
unfive(_) -> throw(none).
