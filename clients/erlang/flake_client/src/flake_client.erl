%% @doc Unique, time-ordered ids from flake nodes.
%%
%% A client asks one of its nodes, and the next one if that node fails. Processes that call
%% {@link id/0} at the same moment share a request. The application starts the client
%% `flake_client' if its environment has `nodes'. Start other clients with {@link start_link/2},
%% under your own supervisor. Functions that involve a client take its name as their first
%% argument, which may be left out for `flake_client'.
%%
%% Options, in the application's environment or for {@link start_link/2}:
%%
%% ```
%% nodes      the nodes to ask, 1 to 100, in order of preference. In tests one of
%%            them may be in_process, which makes ids without any node
%% name       the generator's registered name on the nodes; the default is flake
%% timeout    the time limit of a call in ms; 1 to 3600000, default 5000
%% lease      #{size => Ids, max_age => Ms}: take ids from leases that are fetched
%%            ahead, without a round trip. size is 1 to 1048576, default 1000;
%%            max_age is 1 to 60000, default 100
%% '''
%%
%% The ids of one client have these guarantees:
%%
%% <ul>
%% <li>No id is returned twice.</li>
%% <li>An id is above the ids of all calls, in any process, that had returned before its
%%   call began. This includes calls of both {@link id/0} and {@link ids/1}, and calls from
%%   before the client was restarted or a node was killed or restarted.</li>
%% <li>After a failover ids come from a different node. If that node's clock is behind the
%%   first node's, calls wait until that clock has caught up; calls for which this takes
%%   longer than `timeout' fail with the reason `clock_behind'.</li>
%% <li>With leases, the node handed out each id at most `max_age' ago, or during the call.
%%   The remaining ids of an older lease are dropped.</li>
%% </ul>
%%
%% Whatever happens to the nodes, a call does not raise: it returns `{error, Reason}'. A
%% client repeats a failed call, with pauses, until `timeout' has passed, so a restart of
%% a node only makes calls slow.
-module(flake_client).

-export([start_link/1, start_link/2, child_spec/1, child_spec/2]).
-export([id/0, id/1, id/2, ids/1, ids/2, ids/3]).
-export([notional/1, notional/2, notional/3, decompose/1, decompose/2, decompose/3]).
-export([to_text/2, from_text/2, from_text/3, with_meta/2, time/1, time/2, time/3, time/4]).
-export_type([client/0, options/0, id/0, base/0, text/0, failure/0, reason/0]).

-define(DEFAULT, ?MODULE).
-define(SNO_EPOCH, 1262304000000). % 2010
-define(LOW_BITS, 22). % below the time of a snowflake
-define(TIME_BITS, 41).
-define(IS_CLIENT(C), (is_atom(C) andalso C =/= canonical andalso C =/= crockford andalso C =/= uuid andalso C =/= ulid)).

-type client() :: atom().
%% The name of a client: any atom except `canonical', `crockford', `uuid' and `ulid'.

-type options() :: #{atom() => term()} | [{atom(), term()}].

-type id() :: binary().
%% Ids of flake, uuidv7 and ulid have 16 bytes, those of sno 10, and those of snowflake and flake-idgen 8.

-type base() :: 2..62 | canonical | crockford | uuid | ulid.
%% The digits of bases 2 to 62 are `0-9A-Za-z' in that order. `canonical' is the format's own
%% text: for flake 22 digits of base 62, which sort as ids do; for ids of 10 bytes (sno) 16
%% characters of `2-9a-x'; for ids of 8 bytes a decimal number. `crockford' is Crockford's base
%% 32 in 26, 16 or 13 digits, which sort as ids do and are read in either case. Any id of 16
%% bytes also has the text forms `uuid', a UUID in lower case, and `ulid', the same as
%% `crockford'; both sort as ids do. For ids of uuidv7 and ulid they are the formats' own
%% forms; these ids have no `canonical' text here.

-type text() :: string() | binary().

-type failure() :: badarg
                 | {not_started, client()}
                 | {no_node_available, [{node(), reason()}]}.
%% `badarg': the function or the node does not allow an argument.

-type reason() :: nodedown | refused | noproc | timeout | not_alive
                | clock_running_backwards | timestamp_not_saved
                | clock_behind | unexpected_reply | atom().
%% Why the last request to a node failed. `nodedown': the node is down or unreachable;
%% `refused': the node runs, but refuses the connection, most often because it has a
%% different cookie; `noproc': the node has no generator of that name; `not_alive': the
%% caller's own node is not distributed; `clock_behind': the node's ids would be below
%% those that another node returned; `unexpected_reply': the node does not know the call.
%% Any other reason comes from the node.

%% @equiv start_link(flake_client, Options)
-spec start_link(options()) -> {ok, pid()} | {error, term()}.
start_link(Options) ->
    start_link(?DEFAULT, Options).

%% @doc Starts a client. If an option is wrong, it returns
%% `{error, {bad_option, Key, Value, Allowed}}'.
-spec start_link(client(), options()) -> {ok, pid()} | {error, term()}.
start_link(Client, Options) when ?IS_CLIENT(Client) ->
    flake_client_server:start_link(Client, Options);
start_link(Client, _) ->
    {error, {bad_option, client, Client, "an atom other than canonical, crockford, uuid or ulid"}}.

%% @equiv child_spec(flake_client, Options)
-spec child_spec(options()) -> supervisor:child_spec().
child_spec(Options) ->
    child_spec(?DEFAULT, Options).

%% @doc The specification of a client, for your own supervisor.
-spec child_spec(client(), options()) -> supervisor:child_spec().
child_spec(Client, Options) ->
    #{id => Client, start => {?MODULE, start_link, [Client, Options]}, modules => [flake_client_server]}.

%% @doc The next id.
-spec id() -> {ok, id()} | {error, failure()}.
id() ->
    id(?DEFAULT).

%% @doc The next id of a client; or, given a base, the next id of the client
%% `flake_client' as text, in digits without padding.
-spec id(client() | base()) -> {ok, id() | string()} | {error, failure()}.
id(Client) when ?IS_CLIENT(Client) ->
    case flake_client_server:take(Client, 1) of
        {ok, Runs} -> {ok, hd(flake_client_run:ids(Runs))};
        {error, _} = Error -> Error
    end;
id(Base) ->
    id(?DEFAULT, Base).

%% @doc The next id as text.
-spec id(client(), base()) -> {ok, string()} | {error, failure()}.
id(Client, Base) ->
    case ?IS_CLIENT(Client) andalso flake_client_text:is_base(Base) andalso id(Client) of
        {ok, Id} -> flake_client_text:encode(Id, Base);
        {error, _} = Error -> Error;
        false -> {error, badarg}
    end.

%% @doc The next N ids, ascending. The list holds all of them in memory. The client asks the
%% node for at most a million at a time.
-spec ids(pos_integer()) -> {ok, [id(), ...]} | {error, failure()}.
ids(N) ->
    ids(?DEFAULT, N).

%% @doc The next N ids of a client; or, given a base, the next N ids of the client
%% `flake_client' as text.
-spec ids(client(), pos_integer()) -> {ok, [id(), ...]} | {error, failure()};
         (pos_integer(), base()) -> {ok, [string(), ...]} | {error, failure()}.
ids(Client, N) when ?IS_CLIENT(Client), is_integer(N), N >= 1 ->
    case flake_client_server:take(Client, N) of
        {ok, Runs} -> {ok, flake_client_run:ids(Runs)};
        {error, _} = Error -> Error
    end;
ids(Client, _) when ?IS_CLIENT(Client) ->
    {error, badarg};
ids(N, Base) ->
    ids(?DEFAULT, N, Base).

%% @doc The next N ids as text.
-spec ids(client(), pos_integer(), base()) -> {ok, [string(), ...]} | {error, failure()}.
ids(Client, N, Base) ->
    case flake_client_text:is_base(Base) andalso ids(Client, N) of
        {ok, Ids} -> texts(Ids, Base, []);
        {error, _} = Error -> Error;
        false -> {error, badarg}
    end.

texts([Id | Ids], Base, Texts) ->
    case flake_client_text:encode(Id, Base) of
        {ok, Text} -> texts(Ids, Base, [Text | Texts]);
        {error, badarg} = Error -> Error
    end;
texts([], _, Texts) ->
    {ok, lists:reverse(Texts)}.

%% @doc The id for a time, in milliseconds since 1970, with worker and sequence 0. A
%% range scan can begin at that id.
-spec notional(non_neg_integer()) -> {ok, id()} | {error, failure()}.
notional(Ms) ->
    notional(?DEFAULT, Ms).

%% @doc The id for a time, given a client; or the lowest and the highest id of a span
%% of time, both ends included, from the client `flake_client'.
-spec notional(client(), non_neg_integer()) -> {ok, id()} | {error, failure()};
              (non_neg_integer(), non_neg_integer()) -> {ok, {Lowest :: id(), Highest :: id()}} | {error, failure()}.
notional(Client, Ms) when ?IS_CLIENT(Client) ->
    flake_client_server:ask(Client, {notional, Ms});
notional(From, To) ->
    notional(?DEFAULT, From, To).

%% @doc The lowest and the highest id of a span of time, both ends included.
-spec notional(client(), non_neg_integer(), non_neg_integer()) ->
          {ok, {Lowest :: id(), Highest :: id()}} | {error, failure()}.
notional(Client, From, To) ->
    flake_client_server:ask(Client, {notional, From, To}).

%% @doc The fields of an id: for flake `[{time, Ms}, {worker, W}, {sequence, S}]'.
-spec decompose(id() | text()) -> {ok, [{atom(), term()}]} | {error, failure()}.
decompose(Id) ->
    decompose(?DEFAULT, Id).

%% @doc The fields of an id, given a client; or the fields of an id's text in a base, from
%% the client `flake_client'.
-spec decompose(client(), id() | text()) -> {ok, [{atom(), term()}]} | {error, failure()};
               (text(), base()) -> {ok, [{atom(), term()}]} | {error, failure()}.
decompose(Client, Id) when ?IS_CLIENT(Client) ->
    flake_client_server:ask(Client, {decompose, Id});
decompose(Text, Base) ->
    decompose(?DEFAULT, Text, Base).

%% @doc The fields of an id's text in a base.
-spec decompose(client(), text(), base()) -> {ok, [{atom(), term()}]} | {error, failure()}.
decompose(Client, Text, Name) when Name =:= uuid; Name =:= ulid ->
    case from_text(Text, Name) of
        {ok, Id} -> decompose(Client, Id);
        {error, _} = Error -> Error
    end;
decompose(Client, Text, Base) ->
    flake_client_server:ask(Client, {decompose, Text, Base}).

%% @doc The text of an id in a base, or its canonical text, without asking a node.
-spec to_text(id(), base()) -> {ok, string()} | {error, badarg}.
to_text(Id, Base) when is_binary(Id) ->
    flake_client_text:encode(Id, Base);
to_text(_, _) ->
    {error, badarg}.

%% @equiv from_text(Text, Base, 16)
-spec from_text(text(), base()) -> {ok, id()} | {error, badarg}.
from_text(Text, Base) ->
    from_text(Text, Base, 16).

%% @doc The id that the text represents, given the size of the format's ids in bytes,
%% without asking a node: the reverse of {@link to_text/2}. For flake, the base `canonical'
%% also accepts the form of a UUID, in braces or after urn:uuid: too.
-spec from_text(text(), base(), Size :: 8 | 10 | 16) -> {ok, id()} | {error, badarg}.
from_text(Text, Base, Size) ->
    case flake_client_text:decode(Text, Base, Size) of
        {ok, Id} -> {ok, Id};
        error -> {error, badarg}
    end.

%% @doc An id of 10 bytes (sno) with a different metabyte, which you may choose for each
%% id. The id stays unique. Ids with the same time sort by their metabytes first.
-spec with_meta(id(), byte()) -> {ok, id()} | {error, badarg}.
with_meta(<<Start:5/binary, _, Rest:4/binary>>, Meta) when is_integer(Meta), Meta >= 0, Meta =< 255 ->
    {ok, <<Start/binary, Meta, Rest/binary>>};
with_meta(_, _) ->
    {error, badarg}.

%% @doc When an id of 16 or 10 bytes was made, in milliseconds since 1970, without
%% asking a node.
-spec time(id()) -> {ok, Ms :: non_neg_integer()} | {error, badarg}.
time(<<0:16, Ms:48, _:64>>) -> {ok, Ms};
time(<<Ms:48, _:80>>) -> {ok, Ms}; % uuidv7, ulid
time(<<Units:39, _:41>>) -> {ok, ?SNO_EPOCH + 4 * Units};
time(_) -> {error, badarg}.

%% @doc When an id of 8 bytes was made, given its format's epoch in milliseconds since
%% 1970: 1288834974657 for Twitter's, 0 for flake-idgen's.
-spec time(id(), Epoch :: non_neg_integer()) -> {ok, Ms :: non_neg_integer()} | {error, badarg}.
time(Id, Epoch) ->
    time(Id, Epoch, ?LOW_BITS).

%% @doc When an id of 8 bytes was made, given also how many bits are below its time. These
%% are the bits of the machine and the sequence: 22 unless the generator is configured
%% differently.
-spec time(id(), Epoch :: non_neg_integer(), LowBits :: 0..22) -> {ok, Ms :: non_neg_integer()} | {error, badarg}.
time(Id, Epoch, Low) ->
    time(Id, Epoch, Low, ?TIME_BITS).

%% @doc When an id of 8 bytes was made, given also how many bits its time has: 41 unless the
%% generator is configured differently, or 42 for flake-idgen, whose ids need them from 69 years
%% after the epoch on. A number with more bits is not an id: `{error, badarg}'.
-spec time(id(), Epoch :: non_neg_integer(), LowBits :: 0..22, TimeBits :: 1..46) ->
          {ok, Ms :: non_neg_integer()} | {error, badarg}.
time(<<Id:64>>, Epoch, Low, Bits) when is_integer(Epoch), Epoch >= 0, is_integer(Low), Low >= 0, Low =< ?LOW_BITS,
                                       is_integer(Bits), Bits >= 1, Bits =< 46, Id bsr Low < 1 bsl Bits ->
    {ok, Epoch + (Id bsr Low)};
time(_, _, _, _) ->
    {error, badarg}.
