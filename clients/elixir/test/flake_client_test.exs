defmodule FlakeClientTest do
  use ExUnit.Case, async: true
  doctest FlakeClient
  doctest FlakeClient.Error

  @node String.to_atom(System.fetch_env!("FLAKE_NODE"))

  test "a client with its own name and leases" do
    start_supervised!(
      {FlakeClient, name: __MODULE__, generator: :flake, nodes: [@node], lease: [size: 10]}
    )

    ids = for n <- [1, 3, 10, 11, 100, 1], id <- FlakeClient.ids!(n, client: __MODULE__), do: id
    assert ids == Enum.sort(ids)
    assert length(Enum.uniq(ids)) == 126

    tasks =
      for _ <- 1..20,
          do: Task.async(fn -> for _ <- 1..50, do: FlakeClient.id!(client: __MODULE__) end)

    lists = Enum.map(tasks, &Task.await(&1, :infinity))
    assert Enum.all?(lists, &(&1 == Enum.sort(&1)))
    assert lists |> List.flatten() |> Enum.uniq() |> length() == 1000
  end

  test "a client without leases, by name" do
    start_supervised!({FlakeClient, name: Direct, nodes: [@node], lease: nil})
    assert FlakeClient.id!(client: Direct) < FlakeClient.id!(client: Direct)
  end

  test "bases" do
    now = System.os_time(:millisecond)

    for base <- [:canonical, :crockford, :uuid, :ulid | Enum.to_list(2..62)] do
      assert {:ok, text} = FlakeClient.id(base: base)
      id = FlakeClient.from_text!(text, base: base)
      assert FlakeClient.to_text!(id, base: base) == text
      assert FlakeClient.decompose!(text, base: base)[:time] == FlakeClient.time!(id)

      assert FlakeClient.notional!(now, base: base) ==
               FlakeClient.to_text!(<<now::64, 0::64>>, base: base)

      assert FlakeClient.span!(now, now + 1, base: base) ==
               {FlakeClient.to_text!(<<now::64, 0::64>>, base: base),
                FlakeClient.to_text!(<<now + 1::64, -1::64>>, base: base)}
    end
  end

  test "ids of uuidv7 and of ulid" do
    for {generator, client, base, pattern} <- [
          {:uuids, UUIDs, :uuid,
           ~r/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/},
          {:ulids, ULIDs, :ulid, ~r/^0[0-9A-HJKMNP-TV-Z]{25}$/}
        ] do
      start_supervised!(
        {FlakeClient, name: client, generator: generator, nodes: [@node], lease: []},
        id: client
      )

      options = [client: client, base: base]
      texts = [FlakeClient.id!(options) | FlakeClient.ids!(5000, options)]
      assert Enum.all?(texts, &(&1 =~ pattern))
      assert texts == Enum.uniq(Enum.sort(texts))
      assert [time: time] ++ _ = FlakeClient.decompose!(hd(texts), options)
      assert time == hd(texts) |> FlakeClient.from_text!(base: base) |> FlakeClient.time!()
      {lowest, highest} = FlakeClient.span!(time, time, options)
      assert lowest <= hd(texts) and hd(texts) <= highest
      assert FlakeClient.id(client: client, base: :canonical) == {:error, :badarg}
      assert FlakeClient.span(0, time, client: client, base: :canonical) == {:error, :badarg}

      params = FlakeClient.EctoType.init(base: base, storage: :uuid, client: client)
      text = FlakeClient.EctoType.autogenerate(params)
      assert text > List.last(texts)
      {:ok, id} = FlakeClient.EctoType.dump(text, nil, params)
      assert FlakeClient.EctoType.load(id, nil, params) == {:ok, text}
    end
  end

  test "in process" do
    start_supervised!({FlakeClient, name: InProcess, nodes: [:in_process], lease: [size: 10]})
    ids = for n <- [1, 3, 10, 11, 100, 1], id <- FlakeClient.ids!(n, client: InProcess), do: id
    assert ids == Enum.uniq(Enum.sort(ids))
    options = [client: InProcess, base: :canonical]
    assert FlakeClient.notional!(0, options) == "0000000000000000000000"
    assert FlakeClient.decompose!(FlakeClient.id!(options), options)[:sequence]
  end

  test "errors" do
    start_supervised!({FlakeClient, name: Nowhere, nodes: [:"nobody@127.0.0.1"], timeout: 2000})
    unavailable = {:no_node_available, ["nobody@127.0.0.1": :nodedown]}
    assert FlakeClient.id(client: Nowhere) == {:error, unavailable}

    assert_raise FlakeClient.Error, ~r/nobody@127.0.0.1 \(nodedown\)/, fn ->
      FlakeClient.id!(client: Nowhere)
    end

    assert_raise FlakeClient.Error, ~r/nodedown/, fn ->
      FlakeClient.notional!(0, client: Nowhere)
    end

    assert_raise FlakeClient.Error, ~r/client Nobody is not running/, fn ->
      FlakeClient.ids!(2, client: Nobody)
    end

    assert_raise FlakeClient.Error, ~r/argument/, fn -> FlakeClient.decompose!("!", base: 62) end
    assert_raise FlakeClient.Error, ~r/argument/, fn -> FlakeClient.span!(2, 1) end

    for bad <- [[base: 63], [bas: 62], [base: :uid], 62, [62, base: 62]] do
      assert FlakeClient.id(bad) == {:error, :badarg}
      assert FlakeClient.notional(0, bad) == {:error, :badarg}
      assert FlakeClient.span(0, 1, bad) == {:error, :badarg}
      assert FlakeClient.to_text(<<1::128>>, bad) == {:error, :badarg}
      assert FlakeClient.from_text("1", bad) == {:error, :badarg}
      assert FlakeClient.time(<<1::128>>, bad) == {:error, :badarg}
    end

    assert FlakeClient.time(<<1::64>>) == {:error, :badarg}
    assert FlakeClient.from_text(~c"1", base: 62) == {:error, :badarg}
    assert {:error, {:bad_option, :nods, _, _}} = FlakeClient.start_link(nods: [@node])

    assert {:error, {:bad_option, :generator, "orders", _}} =
             FlakeClient.start_link(nodes: [@node], generator: "orders")

    assert {:error, {:bad_option, :name, :uuid, _}} =
             FlakeClient.start_link(nodes: [@node], name: :uuid)

    assert {:error, {:bad_option, :nodes, _, allowed}} =
             FlakeClient.start_link(nodes: [Atom.to_string(@node)])

    assert List.to_string(allowed) =~ "atoms"
  end
end
