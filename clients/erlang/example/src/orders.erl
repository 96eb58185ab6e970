%% @doc Orders with numbers from a flake node. While a node is running, try it with:
%%
%% ```
%% rebar3 compile
%% export ERL_LIBS=_build/default/lib:_build/default/checkouts
%% erl -noinput -name orders@127.0.0.1 -setcookie flake -s orders demo
%% '''
-module(orders).
-behaviour(application).
-behaviour(supervisor).

-export([new/1, time/1, demo/0]).
-export([start/2, stop/1, init/1]).

-type order() :: #{number := string(), item := string()}.

%% @doc An order with its own number, or the reason why it did not get one.
-spec new(string()) -> {ok, order()} | {error, flake_client:failure()}.
new(Item) ->
    case flake_client:id(orders_ids, canonical) of
        {ok, Number} -> {ok, #{number => Number, item => Item}};
        {error, _} = Error -> Error
    end.

%% @doc When an order was made, according to its number.
-spec time(order()) -> {ok, calendar:datetime()} | {error, flake_client:failure()}.
time(#{number := Number}) ->
    case flake_client:decompose(orders_ids, Number) of
        {ok, [{time, Ms} | _]} -> {ok, calendar:system_time_to_universal_time(Ms, millisecond)};
        {error, _} = Error -> Error
    end.

-spec demo() -> no_return().
demo() ->
    {ok, _} = application:ensure_all_started(?MODULE),
    [begin
         {ok, #{number := Number} = Order} = new(Item),
         {ok, {{Y, M, D}, {H, Mi, S}}} = time(Order),
         io:format("~s  ~b-~2..0b-~2..0b ~2..0b:~2..0b:~2..0bZ  ~s~n", [Number, Y, M, D, H, Mi, S, Item])
     end || Item <- ["tea", "milk", "sugar"]],
    halt(0).

%% --- application and supervisor

start(_Type, _Args) ->
    supervisor:start_link(?MODULE, []).

stop(_State) ->
    ok.

init([]) ->
    Options = #{nodes => ['flake@127.0.0.1'], lease => #{size => 1000, max_age => 100}},
    {ok, {#{strategy => one_for_one}, [flake_client:child_spec(orders_ids, Options)]}}.
