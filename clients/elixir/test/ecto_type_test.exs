defmodule FlakeClient.EctoTypeTest do
  use ExUnit.Case, async: true
  alias FlakeClient.EctoType

  defp init(options \\ []), do: EctoType.init([schema: "s", field: :id] ++ options)
  defp dump(text, params), do: EctoType.dump(text, fn _, _ -> flunk("not composite") end, params)
  defp load(id, params), do: EctoType.load(id, fn _, _ -> flunk("not composite") end, params)

  # Casts and dumps a value, as a query does.
  defp query(value, params) do
    with {:ok, cast} <- EctoType.cast(value, params), do: dump(cast, params)
  end

  test "an id can be stored and loaded" do
    for base <- [:canonical, :crockford, :uuid, :ulid | Enum.to_list(2..62)],
        params = init(base: base) do
      text = EctoType.autogenerate(params)
      assert {:ok, <<_::128>> = id} = dump(text, params)
      assert load(id, params) == {:ok, text}
      assert EctoType.cast(text, params) == {:ok, text}
      assert FlakeClient.decompose(id) == FlakeClient.decompose(text, base: base)
    end
  end

  test "stored ids and canonical text sort by time" do
    params = init()
    texts = for _ <- 1..20, do: EctoType.autogenerate(params)
    assert texts == Enum.sort(texts)
    ids = for text <- texts, {:ok, id} = dump(text, params), do: id
    assert ids == Enum.sort(ids)
  end

  test "the ends of a span can be used in queries, as bytes and as text" do
    now = System.os_time(:millisecond)

    for base <- [:canonical, :crockford, :uuid, :ulid | Enum.to_list(2..62)],
        params = init(base: base, storage: :uuid) do
      {lowest, highest} = FlakeClient.span!(now - 1000, now)
      {lowest_text, highest_text} = FlakeClient.span!(now - 1000, now, base: base)
      assert {:ok, lowest} == query(lowest, params)
      assert {:ok, highest} == query(highest, params)
      assert {:ok, lowest} == query(lowest_text, params)
      assert {:ok, highest} == query(highest_text, params)
      assert {:ok, highest_text} == EctoType.cast(highest, params)
      assert {:ok, lowest} == dump(lowest, params)
    end

    for {base, bytes, low, high} <- [
          {:canonical, 10, <<60, 1, 2, 3, 4, 0::40>>, <<60, 1, 2, 3, 255, -1::40>>},
          {62, 10, <<60, 1, 2, 3, 4, 0::40>>, <<60, 1, 2, 3, 255, -1::40>>},
          {:canonical, 8, <<"01234", 0::24>>, <<"01234", -1::24>>},
          {62, 8, <<"01234", 0::24>>, <<"01234", -1::24>>}
        ],
        params = init(base: base, bytes: bytes),
        id <- [low, high] do
      assert query(id, params) == {:ok, id}
    end
  end

  test "casts only text that is an id" do
    for {options, text, cast} <- [
          {[], nil, {:ok, nil}},
          {[], "0000BCfh7uXSbGCFYUHkcy", {:ok, "0000BCfh7uXSbGCFYUHkcy"}},
          {[], "000001a1-fdd9-eeed-4638-f9433c8d0000", {:ok, "0000BCfh7uXSbGCFYUHkcy"}},
          {[base: 62], "BCfh7uXSbGCFYUHkcy", {:ok, "BCfh7uXSbGCFYUHkcy"}},
          {[base: 62], "0000BCfh7uXSbGCFYUHkcy", :error},
          {[], "BCfh7uXSbGCFYUHkcy", :error},
          {[], "018bcfe5-6800-7001-8000-00000000c004", :error},
          {[base: :uuid], "018BCFE5-6800-7001-8000-00000000C004",
           {:ok, "018bcfe5-6800-7001-8000-00000000c004"}},
          {[base: :uuid], "018bcfe568007001800000000000c004", :error},
          {[base: :ulid], "01hf7yat000004000000008003", {:ok, "01HF7YAT000004000000008003"}},
          {[base: :ulid], "81HF7YAT000004000000008003", :error},
          {[bytes: 10], "22222223272im323", {:ok, "22222223272im323"}},
          {[bytes: 8], "911936766637928448", {:ok, "911936766637928448"}},
          {[bytes: 8], "12345678", {:ok, "12345678"}},
          {[bytes: 8], "0911936766637928448", :error},
          {[bytes: 8], "18446744073709551616", :error},
          {[bytes: 8, base: 62], "15QIg0kUvFo", {:ok, "15QIg0kUvFo"}},
          {[base: 16], "1A1FDD9EEED4638F9433C8D0000", {:ok, "1A1FDD9EEED4638F9433C8D0000"}},
          {[base: 16], "1a1fdd9eeed4638f9433c8d0000", {:ok, "1A1FDD9EEED4638F9433C8D0000"}},
          {[base: 16], "1A1FDD9EEED4638F9433C8D0000" <> "000000", :error},
          {[], String.duplicate("z", 22), :error},
          {[], String.duplicate("z", 100_000), :error},
          {[], "", :error},
          {[], "é", :error},
          {[], ~c"abc", :error},
          {[], 17, :error},
          {[bytes: 8], 17, :error},
          {[bytes: 8, storage: :integer], 17, {:ok, "17"}},
          {[bytes: 8, storage: :integer], -1, {:ok, "18446744073709551615"}},
          {[bytes: 8, storage: :integer], 0x10000000000000000, :error},
          {[bytes: 8, storage: :integer], 1.0, :error}
        ] do
      assert {text, EctoType.cast(text, init(options))} == {text, cast}
      assert {text, elem_or(dump(text, init(options)))} == {text, elem_or(cast)}
    end
  end

  test "does not cast words" do
    words = ~w(z new edit NEW EDIT orders settings password_changed a\0b)

    for base <- [:canonical, :crockford, :uuid, :ulid, 36, 62],
        bytes <- [8, 10, 16],
        bytes == 16 or base not in [:uuid, :ulid],
        params = init(base: base, bytes: bytes) do
      for word <- words do
        assert {word, params, EctoType.cast(word, params)} == {word, params, :error}
        assert dump(word, params) == :error
      end
    end

    assert EctoType.cast("statistics", init(base: 62)) == :error
    assert EctoType.cast("statistics", init(bytes: 8)) == :error
  end

  defp elem_or({:ok, nil}), do: nil
  defp elem_or({:ok, _}), do: :ok
  defp elem_or(:error), do: :error

  test "64-bit ids are integers in the database" do
    for base <- [:canonical, 62], params = init(bytes: 8, storage: :integer, base: base) do
      assert EctoType.type(params) == :integer

      for n <- [0x0CA7D9A859127000, 0xFFFFFFFFFFFFFFFF] do
        <<stored::signed-64>> = <<n::64>>
        text = FlakeClient.to_text!(<<n::64>>, base: base)
        assert dump(text, params) == {:ok, stored}
        assert load(stored, params) == {:ok, text}
        assert query(stored, params) == {:ok, stored}
        assert query(n, params) == {:ok, stored}
      end

      assert query(<<0x0CA7D9A859000000::64>>, params) == {:ok, 0x0CA7D9A859000000}
      assert load(<<1::64>>, params) == :error
    end
  end

  test "a metabyte" do
    start_supervised!(
      {FlakeClient,
       name: Events, generator: :events, nodes: [String.to_atom(System.fetch_env!("FLAKE_NODE"))]}
    )

    params = init(bytes: 10, meta: 7, client: Events)
    <<_::48, partition::16, _::16>> = FlakeClient.id!(client: Events)

    assert {:ok, <<_::40, 7, ^partition::16, _::16>>} =
             dump(EctoType.autogenerate(params), params)
  end

  test "loads only values with the size of an id" do
    assert load(nil, init()) == {:ok, nil}
    assert load(<<35::128>>, init(base: 62)) == {:ok, "Z"}
    assert load(<<35::64>>, init()) == :error
    assert load(35, init()) == :error
    assert load(<<35::64>>, init(bytes: 8, base: 62)) == {:ok, "Z"}
  end

  test "options" do
    assert EctoType.type(init()) == :binary
    assert EctoType.type(init(storage: :uuid)) == :uuid

    for bad <- [
          [base: 1],
          [base: 63],
          [bytes: 9],
          [bytes: 10, base: :uuid],
          [bytes: 8, base: :ulid],
          [meta: 7],
          [bytes: 10, meta: 256],
          [storage: :string],
          [storage: :integer],
          [bytes: 8, storage: :uuid]
        ] do
      assert_raise ArgumentError, fn -> init(bad) end
    end

    assert_raise FlakeClient.Error, fn -> EctoType.autogenerate(init(client: Nobody)) end
  end
end
