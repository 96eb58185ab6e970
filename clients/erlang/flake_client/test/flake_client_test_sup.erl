-module(flake_client_test_sup).
-behaviour(supervisor).
-export([start_link/1, init/1]).

start_link(Children) -> supervisor:start_link(?MODULE, Children).

init(Children) -> {ok, {#{intensity => 10}, Children}}.
