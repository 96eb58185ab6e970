%% @private
%% The application. It supervises the client `flake_client' if the application's environment
%% lists nodes to ask. Clients with other names run under their users' own supervisors.
-module(flake_client_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1, init/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    supervisor:start_link({local, flake_client_sup}, ?MODULE, []).

-spec stop(term()) -> ok.
stop(_State) ->
    ok.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Options = flake_client_options:environment(),
    Clients = [flake_client:child_spec(Options) || is_map_key(nodes, Options)],
    {ok, {#{strategy => one_for_one, intensity => 5, period => 10}, Clients}}.
