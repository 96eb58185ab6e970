%% @private
%% Ids as numbers in a base, as a node writes them for {get, Base}.
-module(flake_client_text).

-export([is_base/1, encode/2]).

-spec is_base(term()) -> boolean().
is_base(Base) -> is_integer(Base) andalso Base >= 2 andalso Base =< 62.

%% Digits are 0-9A-Za-z in that order, without padding.
-spec encode(flake_client:id(), flake_client:base()) -> string().
encode(Id, Base) when Base =< 36 ->
    integer_to_list(binary:decode_unsigned(Id), Base);
encode(Id, Base) ->
    digits(binary:decode_unsigned(Id), Base, []).

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
