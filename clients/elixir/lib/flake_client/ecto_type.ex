if Code.ensure_loaded?(Ecto.ParameterizedType) do
  defmodule FlakeClient.EctoType do
    @moduledoc """
    Ids as fields of Ecto schemas: text in the program, bytes in the database.

        @primary_key {:id, FlakeClient.EctoType, autogenerate: true}

    In a `:binary` (`bytea`) column, or with `storage: :uuid` in a `:uuid` column,
    ids sort by time.

    Options of the field:

      * `:base` - of the text, 2 to 62; 62 unless told
      * `:bytes` - of an id: 16 for flake, 10 or 8 for other formats; 16 unless told
      * `:storage` - `:binary`, or `:uuid` for ids of 16 bytes; `:binary` unless told
      * `:client` - who gives ids to `autogenerate`; `:flake_client` unless told

    `autogenerate` raises `FlakeClient.Error` if there is no id to be had.
    """

    use Ecto.ParameterizedType

    @impl true
    def init(options) do
      base = allowed(options, :base, 62, 2..62)
      bytes = allowed(options, :bytes, 16, [8, 10, 16])

      storage =
        allowed(
          options,
          :storage,
          :binary,
          if(bytes == 16, do: [:binary, :uuid], else: [:binary])
        )

      client = Keyword.get(options, :client, :flake_client)
      %{base: base, bytes: bytes, storage: storage, client: client}
    end

    defp allowed(options, key, default, values) do
      value = Keyword.get(options, key, default)

      value in values ||
        raise ArgumentError, "#{inspect(key)} is #{inspect(value)}, not one of #{inspect(values)}"

      value
    end

    @impl true
    def type(%{storage: storage}), do: storage

    @impl true
    def cast(nil, _), do: {:ok, nil}

    def cast(text, params) do
      case parse(text, params) do
        {:ok, id} -> {:ok, text(id, params)}
        :error -> :error
      end
    end

    @impl true
    def load(nil, _, _), do: {:ok, nil}

    def load(id, _, %{bytes: bytes} = params) when byte_size(id) == bytes,
      do: {:ok, text(id, params)}

    def load(_, _, _), do: :error

    @impl true
    def dump(nil, _, _), do: {:ok, nil}
    def dump(text, _, params), do: parse(text, params)

    @impl true
    def autogenerate(%{base: base, client: client}),
      do: FlakeClient.id!(base: base, client: client)

    defp text(id, %{base: base}), do: id |> :flake_client_text.encode(base) |> List.to_string()

    defp parse(text, %{base: base, bytes: bytes}) when is_binary(text) and text != "" do
      case number(text, base, 0, Bitwise.<<<(1, bytes * 8)) do
        :error -> :error
        n -> {:ok, <<n::size(bytes)-unit(8)>>}
      end
    end

    defp parse(_, _), do: :error

    # Checked digit by digit, so that no text makes a number longer than an id.
    defp number("", _, n, _), do: n

    defp number(<<digit, rest::binary>>, base, n, limit) do
      value = value(digit)
      n = n * base + value
      if value < base and n < limit, do: number(rest, base, n, limit), else: :error
    end

    defp value(digit) when digit in ?0..?9, do: digit - ?0
    defp value(digit) when digit in ?A..?Z, do: digit - ?A + 10
    defp value(digit) when digit in ?a..?z, do: digit - ?a + 36
    defp value(_), do: 62
  end
end
