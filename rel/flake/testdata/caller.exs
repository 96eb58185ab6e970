# What Elixir nodes do to a node that hands out ids: elixir ... caller.exs NODE
node = System.argv() |> hd() |> String.to_atom()
server = {:flake, node}

true = Node.connect(node)
:pong = Node.ping(node)
{:ok, <<_::128>>} = GenServer.call(server, :get)
{:ok, [_ | _]} = GenServer.call(server, {:get, 62})
{:error, :badarg} = GenServer.call(server, {:get, :bad})
:ok = GenServer.call(server, %{"unknown" => [call: 1.5]})
:ok = GenServer.cast(server, :cast)
send(server, :message)

ids =
  for _ <- 1..200 do
    {:ok, id} = GenServer.call(server, :get)
    id
  end

true = ids == Enum.sort(ids) and ids == Enum.uniq(ids)
IO.puts("CHECK elixir ok")
