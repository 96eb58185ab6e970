%% @private
%% Supervises the client `flake_client', if the application's environment says which
%% nodes to ask. Clients with other names run under their users' own supervisors.
-module(flake_client_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Flags = #{strategy => one_for_one, intensity => 5, period => 10},
    {ok, {Flags, children(flake_client_options:environment())}}.

children(Options) when is_map_key(nodes, Options) ->
    [flake_client:child_spec(Options)];
children(_) ->
    [].
