if Code.ensure_loaded?(Ecto.ParameterizedType) do
  defmodule FlakeClient.EctoType do
    @moduledoc """
    Ids as fields of Ecto schemas: text in the program, bytes or integers in the
    database, where they sort by time.

        @primary_key {:id, FlakeClient.EctoType, autogenerate: true}

    The options of a field are:

      * `:base` - the base of the text: `:canonical` (the default), `:crockford`, or 2 to 62. Use
        `:uuid` for ids of uuidv7, and `:ulid` for ids of ulid
      * `:bytes` - the size of an id: 16 (the default) for flake, uuidv7 and ulid, 10 for sno, 8 for
        snowflake and flake-idgen
      * `:storage` - `:binary` (the default) for a `:binary` column (`bytea`), `:uuid` for a
        `:uuid` column and ids of 16 bytes, `:integer` for a `:bigint` column and ids of 8
        bytes, where ids from 2^63 on are negative
      * `:meta` - with `bytes: 10`, the metabyte in ids from `autogenerate`; the default is the
        node's, 0
      * `:client` - the client that `autogenerate` gets ids from; default `:flake_client`

    These values can be cast, in changesets and in queries:

      * the canonical text, and for flake also the form of a UUID; or with `base: 2` to `62`
        text in that base without leading zeros. In a high base, a word can be read as a
        number, so text is refused if the first three bytes of its id would be 0, as in
        ids of flake until 2004. For ids of 8 bytes a word of nine letters may still be read
        as an id; canonical text does not have this problem.
      * the ends of `FlakeClient.span/3` as bytes: a binary of an id's size that is not
        printable as text.
      * with `storage: :integer`, an integer.

    So `Repo.get(Order, "edit")` raises `Ecto.Query.CastError`, because no order can have
    that id. This query returns the orders in a span of time:

        {lowest, highest} = FlakeClient.span!(from, to)
        from(o in Order, where: o.id >= ^lowest and o.id <= ^highest)

    `autogenerate` raises `FlakeClient.Error` if it cannot get an id.
    """

    use Ecto.ParameterizedType

    @impl true
    def init(options) do
      bytes = allowed(options, :bytes, 16, [8, 10, 16])

      base =
        allowed(
          options,
          :base,
          :canonical,
          [:canonical, :crockford | if(bytes == 16, do: [:uuid, :ulid], else: [])] ++
            Enum.to_list(2..62)
        )

      storage =
        allowed(options, :storage, :binary, [
          :binary | Map.get(%{8 => [:integer], 16 => [:uuid]}, bytes, [])
        ])

      %{
        base: base,
        bytes: bytes,
        storage: storage,
        meta:
          allowed(options, :meta, nil, [nil | if(bytes == 10, do: Enum.to_list(0..255), else: [])]),
        client: Keyword.get(options, :client, :flake_client)
      }
    end

    defp allowed(options, key, default, values) do
      value = Keyword.get(options, key, default)

      value in values ||
        raise ArgumentError,
              "#{inspect(key)} is #{inspect(value)}: must be one of #{inspect(values)}"

      value
    end

    @impl true
    def type(%{storage: storage}), do: storage

    @impl true
    def cast(nil, _), do: {:ok, nil}
    def cast(value, params), do: with({:ok, id} <- id(value, params), do: {:ok, text(id, params)})

    @impl true
    def load(nil, _, _), do: {:ok, nil}

    def load(n, _, %{storage: :integer} = params) when is_integer(n),
      do: {:ok, text(<<n::64>>, params)}

    def load(id, _, %{bytes: bytes, storage: storage} = params)
        when byte_size(id) == bytes and storage != :integer,
        do: {:ok, text(id, params)}

    def load(_, _, _), do: :error

    @impl true
    def dump(nil, _, _), do: {:ok, nil}

    def dump(value, _, params),
      do: with({:ok, id} <- id(value, params), do: {:ok, stored(id, params)})

    defp stored(<<n::signed-64>>, %{storage: :integer}), do: n
    defp stored(id, _), do: id

    @impl true
    def autogenerate(%{client: client, meta: meta} = params) do
      id = FlakeClient.id!(client: client)
      text(if(meta, do: FlakeClient.with_meta!(id, meta), else: id), params)
    end

    defp text(id, %{base: base}), do: FlakeClient.to_text!(id, base: base)

    defp id(n, %{storage: :integer})
         when is_integer(n) and n in -0x8000000000000000..0xFFFFFFFFFFFFFFFF,
         do: {:ok, <<n::64>>}

    # Of an id's text forms, only a short decimal number can have as many characters as
    # the id has bytes.
    defp id(value, %{bytes: bytes, base: base}) when byte_size(value) == bytes do
      cond do
        not String.printable?(value) -> {:ok, value}
        is_atom(base) -> from_text(value, base, bytes)
        true -> :error
      end
    end

    defp id(text, %{base: base, bytes: bytes}) when is_atom(base),
      do: from_text(text, base, bytes)

    defp id(text, %{base: base, bytes: bytes}) do
      case from_text(text, base, bytes) do
        {:ok, <<0, 0, 0, _::binary>>} -> :error
        other -> other
      end
    end

    defp from_text("0" <> <<_, _::binary>>, base, bytes) when is_integer(base) or bytes == 8,
      do: :error

    defp from_text(text, base, bytes) do
      case FlakeClient.from_text(text, base: base, bytes: bytes) do
        {:ok, id} -> {:ok, id}
        {:error, :badarg} -> :error
      end
    end
  end
end
