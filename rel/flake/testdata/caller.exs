# Checks that Elixir nodes perform on a node that hands out ids: elixir ... caller.exs NODE
node = System.argv() |> hd() |> String.to_atom()
server = {:flake, node}

true = Node.connect(node)
:pong = Node.ping(node)
{:ok, <<_::128>>} = GenServer.call(server, :get, :infinity)
{:ok, [_ | _]} = GenServer.call(server, {:get, 62}, :infinity)
{:error, :badarg} = GenServer.call(server, {:get, :bad}, :infinity)
:ok = GenServer.call(server, %{"unknown" => [call: 1.5]}, :infinity)
:ok = GenServer.cast(server, :cast)
send(server, :message)

ids =
  for _ <- 1..200 do
    {:ok, id} = GenServer.call(server, :get, :infinity)
    id
  end

true = ids == Enum.sort(ids) and ids == Enum.uniq(ids)

{:ok, many} = GenServer.call(server, {:get_many, 1000}, :infinity)
{:ok, texts} = GenServer.call(server, {:get_many, 1000, :canonical}, :infinity)
{:ok, packed} = GenServer.call(server, {:get_binary, 1000}, :infinity)
split = for <<id::binary-16 <- packed>>, do: id
texts = Enum.map(texts, &List.to_string/1)
true = length(Enum.uniq(many ++ split)) == 2000 and many ++ split == Enum.sort(many ++ split)
true = length(texts) == 1000 and texts == Enum.sort(texts)

{:ok, runs} = GenServer.call(server, {:lease, 1_000_000}, :infinity)
1_000_000 = runs |> Enum.map(fn {<<_::128>>, count} -> count end) |> Enum.sum()

# In Elixir, text is a binary.
{:ok, [time: _, worker: _, sequence: _]} = GenServer.call(server, {:decompose, hd(texts)}, :infinity)
{:ok, [time: ms, worker: _, sequence: _]} = GenServer.call(server, {:decompose, hd(many)}, :infinity)
{:ok, <<^ms::64, 0::64>>} = GenServer.call(server, {:notional, ms}, :infinity)
:flake = GenServer.call(server, :info, :infinity)[:format]
{:error, :badarg} = GenServer.call(server, {:get_many, 0}, :infinity)
IO.puts("CHECK elixir ok")
