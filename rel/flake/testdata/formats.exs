# Takes ids of all formats: elixir ... formats.exs NODE
node = System.argv() |> hd() |> String.to_atom()

for {name, octets} <- [flake: 16, orders: 8, items: 8, events: 10, uuids: 16, ulids: 16] do
  server = {name, node}
  {:ok, id} = GenServer.call(server, :get, :infinity)
  ^octets = byte_size(id)
  {:ok, text} = GenServer.call(server, {:get, :canonical}, :infinity)
  {:ok, [{:time, ms} | _]} = GenServer.call(server, {:decompose, List.to_string(text)}, :infinity)
  true = abs(ms - System.os_time(:millisecond)) < 60_000
  {:ok, many} = GenServer.call(server, {:get_many, 5000}, :infinity)
  true = many == Enum.sort(many) and many == Enum.uniq(many) and hd(many) > id
end

metas =
  for meta <- [0, 7, 255] do
    {:ok, id} = GenServer.call({:events, node}, {:get, :meta, meta}, :infinity)
    {:ok, fields} = GenServer.call({:events, node}, {:decompose, id}, :infinity)
    fields[:meta]
  end

[0, 7, 255] = metas
{:error, :badarg} = GenServer.call({:events, node}, {:get, :meta, 256}, :infinity)
{:error, :badarg} = GenServer.call({:orders, node}, {:get, :meta, 1}, :infinity)
IO.puts("CHECK formats ok")
