defmodule FlakeClient.EctoTypeTest do
  use ExUnit.Case, async: true
  alias FlakeClient.EctoType

  defp init(options \\ []), do: EctoType.init([schema: "s", field: :id] ++ options)
  defp dump(text, params), do: EctoType.dump(text, fn _, _ -> flunk("not composite") end, params)
  defp load(id, params), do: EctoType.load(id, fn _, _ -> flunk("not composite") end, params)

  test "an id goes to the database and back" do
    for base <- 2..62, params = init(base: base) do
      text = EctoType.autogenerate(params)
      assert {:ok, <<_::128>> = id} = dump(text, params)
      assert load(id, params) == {:ok, text}
      assert EctoType.cast(text, params) == {:ok, text}
      assert FlakeClient.decompose(id) == FlakeClient.decompose(text, base: base)
    end
  end

  test "in the database ids sort by time" do
    params = init()
    ids = for _ <- 1..20, {:ok, id} = dump(EctoType.autogenerate(params), params), do: id
    assert ids == Enum.sort(ids)
  end

  test "casts what is an id's text" do
    for {options, text, cast} <- [
          {[], nil, {:ok, nil}},
          {[], "0", {:ok, "0"}},
          {[], "000z", {:ok, "z"}},
          {[base: 16], "FF", {:ok, "FF"}},
          {[base: 16], "ff", :error},
          {[base: 16, bytes: 8], "FFFFFFFFFFFFFFFF", {:ok, "FFFFFFFFFFFFFFFF"}},
          {[base: 16, bytes: 8], "10000000000000000", :error},
          {[], String.duplicate("z", 22), :error},
          {[], String.duplicate("z", 100_000), :error},
          {[], "", :error},
          {[], "a b", :error},
          {[], "é", :error},
          {[], ~c"abc", :error},
          {[], 17, :error}
        ] do
      assert {text, EctoType.cast(text, init(options))} == {text, cast}
      assert {text, elem_or(dump(text, init(options)))} == {text, elem_or(cast)}
    end
  end

  defp elem_or({:ok, nil}), do: nil
  defp elem_or({:ok, _}), do: :ok
  defp elem_or(:error), do: :error

  test "loads what has an id's size" do
    assert load(nil, init()) == {:ok, nil}
    assert load(<<35::128>>, init()) == {:ok, "Z"}
    assert load(<<35::64>>, init()) == :error
    assert load(<<35::64>>, init(bytes: 8)) == {:ok, "Z"}
  end

  test "options" do
    assert EctoType.type(init()) == :binary
    assert EctoType.type(init(storage: :uuid)) == :uuid

    for bad <- [[base: 1], [base: 63], [bytes: 9], [storage: :string], [bytes: 8, storage: :uuid]] do
      assert_raise ArgumentError, fn -> init(bad) end
    end

    assert_raise FlakeClient.Error, fn -> EctoType.autogenerate(init(client: Nobody)) end
  end
end
