defmodule FlakeClient do
  @moduledoc """
  Unique, time-ordered ids from flake nodes.

  Put a client under a supervisor:

      children = [
        {FlakeClient, nodes: [:"flake@127.0.0.1"]}
      ]

  and take ids:

      {:ok, <<_time::64, _worker::48, _sequence::16>>} = FlakeClient.id()
      text = FlakeClient.id!(base: :canonical)

  This is the Erlang application `:flake_client` with Elixir's names and types.
  The documentation of the module `:flake_client` describes its guarantees about
  order, freshness and failover. The ids of one client strictly increase, whichever
  processes take them; leased ids are no older than the lease's `max_age`.

  ## Options of a client

    * `:nodes` - the nodes to ask, in order of preference; in tests,
      `[:in_process]` makes ids without any node
    * `:name` - the client's name, if there are several clients; default `:flake_client`
    * `:generator` - the generator's registered name on the nodes; default
      `:flake`
    * `:timeout` - the time limit of a call, in milliseconds; default 5000
    * `:lease` - makes the client take ids from leases that it fetches ahead, without a
      round trip: `[size: 1000, max_age: 100]`, with the age in milliseconds

  ## Options of a call

    * `:client` - the name of the client; default `:flake_client`
    * `:base` - returns ids as text. 2 to 62: in that base, with digits `0-9A-Za-z`;
      `:canonical`: the format's own text, for flake 22 digits of base 62, which sort
      as ids do; `:uuid` or `:ulid`, for ids of 16 bytes: the text forms of uuidv7
      and ulid, which also sort as ids do; `:crockford`: Crockford's base 32,
      which sorts as ids do and is accepted in either case

  Whatever happens to the nodes, functions without `!` do not raise. Functions with
  `!` raise `FlakeClient.Error` instead of returning an error.
  """

  @typedoc "Ids of flake, uuidv7 and ulid have 16 bytes, those of sno 10, and those of snowflake and flake-idgen 8."
  @type id :: <<_::64, _::_*8>>

  @typedoc "An id as a number in a base, without padding, or in another of its text forms."
  @type text :: String.t()

  @type base :: 2..62 | :canonical | :crockford | :uuid | :ulid
  @type client :: atom
  @type time :: non_neg_integer | DateTime.t()

  @type start_option ::
          {:nodes, [node, ...]}
          | {:name, client}
          | {:generator, atom}
          | {:timeout, pos_integer}
          | {:lease, nil | [size: pos_integer, max_age: pos_integer]}

  @type option :: {:client, client} | {:base, base}
  @type failure :: :flake_client.failure()

  @default :flake_client
  @start_options [:nodes, :name, :generator, :timeout, :lease]

  @doc """
  A client for a supervisor, as `{FlakeClient, options}`.

      iex> FlakeClient.child_spec(name: MyApp.Ids, nodes: [:"flake@127.0.0.1"]).id
      MyApp.Ids
  """
  @spec child_spec([start_option]) :: Supervisor.child_spec()
  def child_spec(options) do
    %{id: options[:name] || @default, start: {__MODULE__, :start_link, [options]}}
  end

  @doc """
  Starts a client.

      iex> FlakeClient.start_link(nodes: [])
      {:error, {:bad_option, :nodes, [], ~c"a list of 1 to 100 different nodes"}}

      iex> FlakeClient.start_link(nodes: [:"flake@127.0.0.1"], node: :flake)
      {:error,
       {:bad_option, :node, :flake, ~c"one of :nodes, :name, :generator, :timeout, :lease"}}
  """
  @spec start_link([start_option]) :: {:ok, pid} | {:error, term}
  def start_link(options) do
    {client, others} = Keyword.pop(options, :name, @default)

    case Enum.find(others, fn {key, _} -> key not in @start_options end) do
      nil ->
        client
        |> :flake_client.start_link(Enum.map(others, &start_option/1))
        |> started()

      {key, value} ->
        allowed = Enum.map_join(@start_options, ", ", &inspect/1)
        {:error, {:bad_option, key, value, to_charlist("one of " <> allowed)}}
    end
  end

  # Errors use this module's names for the options.
  defp started({:error, {:bad_option, key, value, allowed}}) do
    {:error, {:bad_option, %{client: :name, name: :generator}[key] || key, value, allowed}}
  end

  defp started(result), do: result

  defp start_option({:generator, name}), do: {:name, name}
  defp start_option({:lease, nil}), do: {:lease, :undefined}
  defp start_option(option), do: option

  @doc """
  The next id.

      iex> {:ok, <<time::64, _worker::48, _sequence::16>>} = FlakeClient.id()
      iex> DateTime.from_unix!(time, :millisecond).year >= 2026
      true

      iex> {:ok, text} = FlakeClient.id(base: :canonical)
      iex> text =~ ~r/^[0-9A-Za-z]{22}$/
      true

      iex> FlakeClient.id(base: 63)
      {:error, :badarg}
  """
  @spec id([option]) :: {:ok, id | text} | {:error, failure}
  def id(options \\ []) do
    case call(:id, [], options) do
      {:ok, id} -> {:ok, text(id)}
      error -> error
    end
  end

  @doc "The next id, as `id/1` returns it."
  @spec id!([option]) :: id | text
  def id!(options \\ []), do: options |> id() |> must()

  @doc """
  The next ids, ascending.

      iex> {:ok, [a, b, c]} = FlakeClient.ids(3)
      iex> a < b and b < c
      true

      iex> FlakeClient.ids(0)
      {:error, :badarg}
  """
  @spec ids(pos_integer, [option]) :: {:ok, [id | text, ...]} | {:error, failure}
  def ids(n, options \\ []) do
    case call(:ids, [n], options) do
      {:ok, ids} -> {:ok, Enum.map(ids, &text/1)}
      error -> error
    end
  end

  @doc "The next ids, as `ids/2` returns them."
  @spec ids!(pos_integer, [option]) :: [id | text, ...]
  def ids!(n, options \\ []), do: n |> ids(options) |> must()

  @doc """
  The id for a time, in milliseconds since 1970 or as a `DateTime`, with worker and
  sequence 0. A range scan can begin at that id.

      iex> FlakeClient.notional(~U[2023-11-14 22:13:20.000Z])
      {:ok, <<1_700_000_000_000::64, 0::64>>}

      iex> FlakeClient.notional(1_700_000_000_000, base: :canonical)
      {:ok, "0000AboKHPfDwy7uRnVX9M"}
  """
  @spec notional(time, [option]) :: {:ok, id | text} | {:error, failure}
  def notional(at, options \\ []) do
    with {:ok, base, options} <- pop_base(options),
         {:ok, id} <- call(:notional, [milli(at)], options),
         do: in_base(id, base)
  end

  @doc "The id for a time, as `notional/2` returns it."
  @spec notional!(time, [option]) :: id | text
  def notional!(at, options \\ []), do: at |> notional(options) |> must()

  @doc """
  The lowest and the highest id of a span of time, both ends included, for range
  scans. Text in bases 2 to 62 may sort differently from the ids.

      iex> {:ok, {lowest, highest}} = FlakeClient.span(1_700_000_000_000, 1_700_000_000_000)
      iex> {lowest, highest}
      {<<1_700_000_000_000::64, 0::64>>, <<1_700_000_000_000::64, -1::64>>}

      iex> FlakeClient.span(1_700_000_000_000, 1_700_000_000_000, base: 16)
      {:ok, {"18BCFE568000000000000000000", "18BCFE56800FFFFFFFFFFFFFFFF"}}
  """
  @spec span(time, time, [option]) :: {:ok, {id, id} | {text, text}} | {:error, failure}
  def span(from, to, options \\ []) do
    with {:ok, base, options} <- pop_base(options),
         {:ok, {lowest, highest}} <- call(:notional, [milli(from), milli(to)], options),
         {:ok, lowest} <- in_base(lowest, base),
         {:ok, highest} <- in_base(highest, base),
         do: {:ok, {lowest, highest}}
  end

  @doc "The lowest and the highest id of a span, as `span/3` returns them."
  @spec span!(time, time, [option]) :: {id, id} | {text, text}
  def span!(from, to, options \\ []), do: from |> span(to, options) |> must()

  @doc """
  The fields of an id, or of its text in a base.

      iex> FlakeClient.decompose(<<1_700_000_000_000::64, 2::48, 3::16>>)
      {:ok, [time: 1_700_000_000_000, worker: 2, sequence: 3]}

      iex> {:ok, [time: _, worker: _, sequence: _]} =
      ...>   FlakeClient.decompose(FlakeClient.id!(base: :canonical), base: :canonical)
  """
  @spec decompose(id | text, [option]) :: {:ok, keyword} | {:error, failure}
  def decompose(id, options \\ []), do: call(:decompose, [id], options)

  @doc "The fields of an id, as `decompose/2` returns them."
  @spec decompose!(id | text, [option]) :: keyword
  def decompose!(id, options \\ []), do: id |> decompose(options) |> must()

  @doc """
  The text of an id, `:canonical` or in a different `:base`, without asking a node.

      iex> FlakeClient.to_text(<<1_700_000_000_000::64, 2::48, 3::16>>)
      {:ok, "0000AboKHPfDwy7uRnW5FT"}

      iex> FlakeClient.to_text(<<911_936_766_637_928_448::64>>)
      {:ok, "911936766637928448"}

      iex> FlakeClient.to_text(<<1_700_000_000_000::48, 7::4, 1::12, 2::2, 3::48, 4::14>>, base: :uuid)
      {:ok, "018bcfe5-6800-7001-8000-00000000c004"}

      iex> FlakeClient.to_text(<<1_700_000_000_000::48, 1::16, 2::48, 3::16>>, base: :ulid)
      {:ok, "01HF7YAT00000G000000004003"}
  """
  @spec to_text(id, base: base) :: {:ok, text} | {:error, :badarg}
  def to_text(id, options \\ []) do
    with {:ok, base, []} <- pop_base(options, :canonical),
         {:ok, text} <- :flake_client.to_text(id, base) do
      {:ok, text(text)}
    else
      _ -> {:error, :badarg}
    end
  end

  @doc "The text of an id, as `to_text/2` returns it."
  @spec to_text!(id, base: base) :: text
  def to_text!(id, options \\ []), do: id |> to_text(options) |> must()

  @doc """
  The id that the text represents, `:canonical` or in a different `:base`, without asking
  a node. `:bytes` is the size of the format's ids: 16 (the default), 10 or 8.

      iex> FlakeClient.from_text("0000AboKHPfDwy7uRnW5FT")
      {:ok, <<1_700_000_000_000::64, 2::48, 3::16>>}

      iex> FlakeClient.from_text("018bcfe5-6800-7001-8000-00000000c004", base: :uuid)
      {:ok, <<1_700_000_000_000::48, 7::4, 1::12, 2::2, 3::48, 4::14>>}

      iex> FlakeClient.from_text("911936766637928448", bytes: 8)
      {:ok, <<911_936_766_637_928_448::64>>}

      iex> FlakeClient.from_text("edit")
      {:error, :badarg}
  """
  @spec from_text(text, base: base, bytes: 8 | 10 | 16) :: {:ok, id} | {:error, :badarg}
  def from_text(text, options \\ []) do
    {bytes, options} = pop(options, :bytes, 16)

    case pop_base(options, :canonical) do
      {:ok, base, []} when is_binary(text) -> :flake_client.from_text(text, base, bytes)
      _ -> {:error, :badarg}
    end
  end

  @doc "The id of a text, as `from_text/2` returns it."
  @spec from_text!(text, base: base, bytes: 8 | 10 | 16) :: id
  def from_text!(text, options \\ []), do: text |> from_text(options) |> must()

  @doc """
  An id of 10 bytes (sno) with a different metabyte, which you may choose for each id.
  The id stays unique. Ids with the same time sort by their metabytes first.

      iex> FlakeClient.with_meta(<<1::80>>, 7)
      {:ok, <<0::40, 7, 1::32>>}

      iex> FlakeClient.with_meta(<<1::80>>, 256)
      {:error, :badarg}
  """
  @spec with_meta(id, byte) :: {:ok, id} | {:error, :badarg}
  def with_meta(id, meta), do: :flake_client.with_meta(id, meta)

  @doc "An id with a different metabyte, as `with_meta/2` returns it."
  @spec with_meta!(id, byte) :: id
  def with_meta!(id, meta), do: id |> with_meta(meta) |> must()

  @doc """
  When an id was made, in milliseconds since 1970, without asking a node. An id of
  8 bytes needs options: `:epoch` is its format's epoch, in milliseconds since 1970 or
  as a `DateTime`; `:low_bits` is how many bits are below its time, for the machine and
  the sequence, 22 by default; `:time_bits` is how many the time has, 41 by default, or
  42 for flake-idgen from 69 years after the epoch on. A number with more bits is not an
  id.

      iex> {:ok, ms} = FlakeClient.time(<<1_700_000_000_000::64, 2::48, 3::16>>)
      iex> DateTime.from_unix!(ms, :millisecond)
      ~U[2023-11-14 22:13:20.000Z]

      iex> FlakeClient.time(<<911_936_766_637_928_448::64>>, epoch: ~U[2020-01-01 00:00:00Z])
      {:ok, 1_795_259_468_132}

      iex> FlakeClient.time(<<5::47, 0::17>>, epoch: 0, low_bits: 17)
      {:ok, 5}

      iex> FlakeClient.time(<<1::1, 0::63>>, epoch: 0)
      {:error, :badarg}
  """
  @spec time(id, epoch: time, low_bits: 0..22, time_bits: 1..46) ::
          {:ok, non_neg_integer} | {:error, :badarg}
  def time(id, options \\ []) do
    {low, options} = pop(options, :low_bits, 22)
    {bits, options} = pop(options, :time_bits, 41)

    case options do
      [] -> :flake_client.time(id)
      [epoch: epoch] -> :flake_client.time(id, milli(epoch), low, bits)
      _ -> {:error, :badarg}
    end
  end

  @doc "When an id was made, as `time/2` returns it."
  @spec time!(id, epoch: time, low_bits: 0..22, time_bits: 1..46) :: non_neg_integer
  def time!(id, options \\ []), do: id |> time(options) |> must()

  defp call(function, arguments, options) do
    {client, options} = pop(options, :client, @default)

    case options do
      [] -> apply(:flake_client, function, [client | arguments])
      [base: base] -> apply(:flake_client, function, [client | arguments] ++ [base])
      _ -> {:error, :badarg}
    end
  end

  # Leaves options that are not a keyword list unchanged, to be refused like unknown options.
  defp pop(options, key, default) do
    if Keyword.keyword?(options), do: Keyword.pop(options, key, default), else: {default, options}
  end

  # Takes the base out of the options. It is nil if no text is requested. Text in that base
  # is made here, because a node does not return notional ids as text.
  defp pop_base(options, default \\ nil) do
    {base, options} = pop(options, :base, default)

    if base == nil or :flake_client_text.is_base(base),
      do: {:ok, base, options},
      else: {:error, :badarg}
  end

  defp in_base(id, nil), do: {:ok, id}
  defp in_base(id, base), do: to_text(id, base: base)

  defp text(id) when is_list(id), do: List.to_string(id)
  defp text(id), do: id

  defp milli(%DateTime{} = at), do: DateTime.to_unix(at, :millisecond)
  defp milli(ms), do: ms

  defp must({:ok, value}), do: value
  defp must({:error, reason}), do: raise(FlakeClient.Error, reason: reason)
end
