#!/usr/bin/env escript
%% Packs the client libraries for Hex, with rebar3's own packer.
%%
%%     hex.escript SOURCE VERSION OUT
%%     hex.escript unpack TARBALL DIR
-mode(compile).

main(["unpack", Tarball, Dir]) ->
    load(),
    {ok, Bytes} = file:read_file(Tarball),
    {ok, #{metadata := Metadata}} = r3_hex_tarball:unpack(Bytes, Dir),
    io:format("~tp.~n", [Metadata]);
main([Source, Version, Out]) ->
    load(),
    pack(Source, Version, Out, erlang()),
    pack(Source, Version, Out, elixir(Version)).

%% Returns a library's folder, its metadata for Hex, the files to take from the folder, and those
%% to take from elsewhere in the source.
erlang() ->
    {"clients/erlang/flake_client",
     #{<<"name">> => <<"flake_client">>,
       <<"build_tools">> => [<<"rebar3">>],
       <<"requirements">> => #{}},
     ["rebar.config", "src/*.{erl,hrl,src}", "include/*.hrl"],
     [{"README.md", "clients/erlang/README.md"}, {"LICENSE", "LICENSE"}]}.

elixir(Version) ->
    {"clients/elixir",
     #{<<"name">> => <<"flake_client_elixir">>,
       <<"elixir">> => <<"~> 1.10">>,
       <<"build_tools">> => [<<"mix">>],
       <<"requirements">> =>
           #{<<"flake_client">> => requirement(<<"flake_client">>, list_to_binary("~> " ++ Version), false),
             <<"ecto">> => requirement(<<"ecto">>, <<"~> 3.5">>, true)}},
     ["mix.exs", "lib/**/*.ex", "README.md"],
     [{"LICENSE", "LICENSE"}]}.

requirement(App, Range, Optional) ->
    #{<<"app">> => App, <<"requirement">> => Range, <<"optional">> => Optional, <<"repository">> => <<"hexpm">>}.

pack(Source, Version, Out, {Folder, Own, Patterns, More}) ->
    Dir = filename:join(Source, Folder),
    Found = lists:append([filelib:wildcard(P, Dir) || P <- Patterns]),
    Files = lists:sort([{F, filename:join(Dir, F)} || F <- Found] ++
                       [{F, filename:join(Source, From)} || {F, From} <- More]),
    #{<<"name">> := Name} = Own,
    Metadata = Own#{<<"app">> => Name,
                    <<"version">> => list_to_binary(Version),
                    <<"description">> => <<"Unique, time-ordered ids from flake nodes">>,
                    <<"files">> => [list_to_binary(F) || {F, _} <- Files],
                    <<"licenses">> => [<<"Apache-2.0">>],
                    <<"links">> => #{<<"GitHub">> => <<"https://github.com/flake-go/flake">>}},
    {ok, #{tarball := Tarball}} = r3_hex_tarball:create(Metadata, [{F, read(From)} || {F, From} <- Files]),
    ok = file:write_file(filename:join(Out, io_lib:format("~ts-~ts.tar", [Name, Version])), Tarball).

read(Name) ->
    {ok, Bytes} = file:read_file(Name),
    Bytes.

%% rebar3 is an archive that contains the packer's modules.
load() ->
    Rebar3 = case os:find_executable("rebar3") of
                 false -> fail("rebar3 is missing: https://rebar3.org", []);
                 Found -> Found
             end,
    {ok, Sections} = escript:extract(Rebar3, []),
    {archive, Archive} = lists:keyfind(archive, 1, Sections),
    Packer = fun({zip_file, Name, _, _, _, _}) -> lists:prefix("r3_", filename:basename(Name)) end,
    {ok, Files} = zip:unzip(Archive, [memory, {file_filter, Packer}]),
    [{module, _} = code:load_binary(list_to_atom(filename:basename(Name, ".beam")), Name, Bytes) || {Name, Bytes} <- Files].

fail(Format, Args) ->
    io:format(standard_error, "hex.escript: " ++ Format ++ "~n", Args),
    halt(1).
