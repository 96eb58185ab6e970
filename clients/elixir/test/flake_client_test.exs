defmodule FlakeClientTest do
  use ExUnit.Case, async: true
  doctest FlakeClient
  doctest FlakeClient.Error

  @node String.to_atom(System.fetch_env!("FLAKE_NODE"))

  test "a client of one's own, with leases" do
    start_supervised!(
      {FlakeClient, name: __MODULE__, generator: :flake, nodes: [@node], lease: [size: 10]}
    )

    ids = for n <- [1, 3, 10, 11, 100, 1], id <- FlakeClient.ids!(n, client: __MODULE__), do: id
    assert ids == Enum.sort(ids)
    assert length(Enum.uniq(ids)) == 126

    tasks =
      for _ <- 1..20,
          do: Task.async(fn -> for _ <- 1..50, do: FlakeClient.id!(client: __MODULE__) end)

    lists = Enum.map(tasks, &Task.await/1)
    assert Enum.all?(lists, &(&1 == Enum.sort(&1)))
    assert lists |> List.flatten() |> Enum.uniq() |> length() == 1000
  end

  test "a client without leases, by name" do
    start_supervised!({FlakeClient, name: Direct, nodes: [@node], lease: nil})
    assert FlakeClient.id!(client: Direct) < FlakeClient.id!(client: Direct)
  end

  test "what is wrong" do
    start_supervised!({FlakeClient, name: Nowhere, nodes: [:"nobody@127.0.0.1"], timeout: 2000})
    unavailable = {:no_node_available, ["nobody@127.0.0.1": :nodedown]}
    assert FlakeClient.id(client: Nowhere) == {:error, unavailable}

    assert_raise FlakeClient.Error, ~r/nobody@127.0.0.1 \(nodedown\)/, fn ->
      FlakeClient.id!(client: Nowhere)
    end

    assert_raise FlakeClient.Error, ~r/nodedown/, fn ->
      FlakeClient.notional!(0, client: Nowhere)
    end

    assert_raise FlakeClient.Error, ~r/no client Elixir.Nobody|no client Nobody/, fn ->
      FlakeClient.ids!(2, client: Nobody)
    end

    assert_raise FlakeClient.Error, ~r/argument/, fn -> FlakeClient.decompose!("!", base: 62) end
    assert_raise FlakeClient.Error, ~r/argument/, fn -> FlakeClient.span!(2, 1) end
    assert FlakeClient.id(bas: 62) == {:error, :badarg}
    assert {:error, {:bad_option, :nods, _, _}} = FlakeClient.start_link(nods: [@node])
  end
end
