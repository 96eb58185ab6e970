%% Makes the tests' dets files of one OTP release: make-dets runs it on each release. The table is opened, written
%% and left as in boundary/flake. A node that is killed here leaves in the file the time that its last sync
%% wrote, not the later time that it has inserted since.
-module('make-dets').
-export([main/0]).

-define(T, 1700000000123).

main() ->
    [How, File] = init:get_plain_arguments(),
    make(list_to_atom(How), File),
    erlang:halt(0, [{flush, false}]).

open(File) ->
    {ok, Table} = dets:open_file(timestamp_table, [{estimated_no_objects, 10}, {type, set}, {file, File}]),
    Table.

write(Table, T) -> ok = dets:insert(Table, {last_timestamp, T}).

kill() -> os:cmd("kill -9 " ++ os:getpid()).

closed(File, Objects) ->
    Table = open(File),
    [ok = dets:insert(Table, O) || O <- Objects],
    ok = dets:close(Table).

make(closed, File) -> closed(File, [{last_timestamp, ?T}]);
make(killed, File) ->
    Table = open(File),
    write(Table, ?T),
    ok = dets:sync(Table),
    write(Table, ?T + 1000),
    kill();
make(repaired, File) -> ok = dets:close(open(File)); % the file of a killed node
make(reopened, File) ->
    closed(File, [{last_timestamp, ?T + N} || N <- lists:seq(1, 50)]),
    closed(File, [{last_timestamp, ?T}]);
make(stale, File) ->
    closed(File, [{last_timestamp, ?T}]),
    write(open(File), ?T + 1000),
    kill();
make(empty, File) -> closed(File, []);
make(unwritten, File) ->
    write(open(File), ?T),
    kill();
make(future, File) -> closed(File, [{last_timestamp, 4102444800000}]);
make(other_key, File) -> closed(File, [{other, ?T}]);
make(no_integer, File) -> closed(File, [{last_timestamp, never}]);
make(great, File) -> closed(File, [{last_timestamp, 1 bsl 80}]);
make(negative, File) -> closed(File, [{last_timestamp, -1}]);
make(crowd, File) -> closed(File, [{last_timestamp, ?T} | [{N, N} || N <- lists:seq(1, 250)]]);
make(grown, File) -> closed(File, [{last_timestamp, ?T} | [{N, N} || N <- lists:seq(1, 600)]]);
make(bag, File) ->
    {ok, Table} = dets:open_file(t, [{type, bag}, {file, File}]),
    write(Table, ?T),
    ok = dets:close(Table);
make(keypos, File) ->
    {ok, Table} = dets:open_file(t, [{keypos, 2}, {file, File}]),
    ok = dets:insert(Table, {?T, last_timestamp}),
    ok = dets:close(Table).
