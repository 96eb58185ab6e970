%% @private
%% Ids as text: numbers in a base, as a node writes them for {get, Base}, and the
%% canonical text of each format, which depends on the size of the id.
-module(flake_client_text).

-export([is_base/1, encode/2, decode/3]).

-define(IS_BASE(B), is_integer(B), B >= 2, B =< 62).
-define(IS_SIZE(S), (S =:= 8 orelse S =:= 10 orelse S =:= 16)).

-define(CROCKFORD, "0123456789ABCDEFGHJKMNPQRSTVWXYZ").
-define(PAD(Size), (5 - Size * 8 rem 5) rem 5). % zero bits, so that each digit has 5 bits

-spec is_base(term()) -> boolean().
is_base(Name) when Name =:= canonical; Name =:= crockford; Name =:= uuid; Name =:= ulid -> true;
is_base(Base) -> is_integer(Base) andalso Base >= 2 andalso Base =< 62.

%% Reports whether an id has a text form in that base. Ids of uuidv7 and ulid do not show which
%% format they have, so they have no canonical text here.
-spec has(flake_client:id(), flake_client:base()) -> boolean().
has(<<Time:16, _:112>>, canonical) -> Time =:= 0;
has(Id, Name) when Name =:= uuid; Name =:= ulid -> byte_size(Id) =:= 16;
has(Id, Base) -> ?IS_SIZE(byte_size(Id)) andalso is_base(Base).

%% In a base from 2 to 62, digits are 0-9A-Za-z in that order, without padding.
-spec encode(flake_client:id(), flake_client:base()) -> {ok, string()} | {error, badarg}.
encode(Id, Base) ->
    case has(Id, Base) of
        true -> {ok, text(Id, Base)};
        false -> {error, badarg}
    end.

text(<<A:4/binary, B:2/binary, C:2/binary, D:2/binary, E:6/binary>>, uuid) ->
    lists:append(lists:join("-", [[hex(V) || <<V:4>> <= Group] || Group <- [A, B, C, D, E]]));
text(Id, ulid) ->
    text(Id, crockford);
text(Id, crockford) ->
    [lists:nth(V + 1, ?CROCKFORD) || <<V:5>> <= <<0:(?PAD(byte_size(Id))), Id/binary>>];
text(<<Id:128>>, canonical) ->
    Text = digits(Id, 62, []),
    lists:duplicate(22 - length(Text), $0) ++ Text;
text(<<Id:10/binary>>, canonical) ->
    [five(V) || <<V:5>> <= Id];
text(Id, canonical) ->
    text(Id, 10);
text(Id, Base) when Base =< 36 ->
    integer_to_list(binary:decode_unsigned(Id), Base);
text(Id, Base) ->
    digits(binary:decode_unsigned(Id), Base, []).

%% The reverse of encode, for ids of Size bytes. It reads text as a node does.
-spec decode(term(), term(), term()) -> {ok, flake_client:id()} | error.
decode(Text, Base, Size) when is_binary(Text) ->
    decode(binary_to_list(Text), Base, Size);
decode(Text, Base, Size) when ?IS_SIZE(Size) ->
    try read(Text, Base, Size) of
        Id -> {ok, Id}
    catch
        throw:none -> error;
        error:_ -> error % not text
    end;
decode(_, _, _) ->
    error.

read(Text, Base, Size) when ?IS_BASE(Base) ->
    (Text =/= [] andalso length(Text) =< length(text(<<-1:Size/unit:8>>, Base))) orelse throw(none),
    case number([upper(C, Base) || C <- Text], Base) of
        Id when Id < 1 bsl (Size * 8) -> <<Id:Size/unit:8>>;
        _ -> throw(none)
    end;
read(Text, canonical, 8) ->
    read(Text, 10, 8);
read(Text, canonical, 10) when length(Text) =:= 16 ->
    << <<(unfive(C)):5>> || C <- Text >>;
read(Text, canonical, 16) when length(Text) =:= 22 ->
    <<0:16, _/binary>> = read(Text, 62, 16);
read(Text, canonical, 16) ->
    <<0:16, _/binary>> = read(Text, uuid, 16);
read([${ | Text], uuid, 16) when length(Text) =:= 37 ->
    {Uuid, "}"} = lists:split(36, Text),
    read(Uuid, uuid, 16);
read(Text, uuid, 16) when length(Text) =:= 45 ->
    {Urn, Uuid} = lists:split(9, Text),
    "urn:uuid:" = string:lowercase(Urn),
    read(Uuid, uuid, 16);
read(Text, uuid, 16) when length(Text) =:= 36 ->
    [8, 4, 4, 4, 12] = [length(Group) || Group <- string:split(Text, "-", all)],
    read([C || C <- Text, C =/= $-], 16, 16);
read(Text, ulid, 16) ->
    read(Text, crockford, 16);
read(Text, crockford, Size) when length(Text) =< 26 ->
    <<0:(?PAD(Size)), Id:Size/binary>> = << <<(crockford(C)):5>> || C <- Text >>,
    Id;
read(_, _, _) ->
    throw(none).

number(Text, Base) ->
    lists:foldl(fun(C, N) ->
                        case value(C) of
                            V when V < Base -> N * Base + V;
                            _ -> throw(none)
                        end
                end, 0, Text).

%% Base 16 is read in either case. Letters that are not in ASCII may have upper case there, but are not digits.
upper(C, 16) when C >= $a, C =< $f -> C - $a + $A;
upper(C, _) -> C.

%% Splits off nine digits at a time, because nine digits fit in a word and need no bignum.
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

hex(D) when D < 10 -> $0 + D;
hex(D) -> $a + D - 10.

%% Reads digits in either case.
crockford(C) when C >= $a, C =< $z ->
    crockford(C - $a + $A);
crockford(C) ->
    case string:chr(?CROCKFORD, C) of
        0 -> throw(none);
        Place -> Place - 1
    end.

%% The digits of sno, 5 bits each.
five(V) when V < 8 -> $2 + V;
five(V) -> $a + V - 8.

unfive(C) when C >= $2, C =< $9 -> C - $2;
unfive(C) when C >= $a, C =< $x -> C - $a + 8;
unfive(_) -> throw(none).
