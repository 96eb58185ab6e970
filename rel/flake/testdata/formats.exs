# Takes ids of all formats: elixir ... formats.exs NODE ,NAME/OCTETS,...
[node, generators] = System.argv()
node = String.to_atom(node)

for generator <- String.split(generators, ",", trim: true) do
  [name, octets] = String.split(generator, "/")
  server = {String.to_atom(name), node}
  {:ok, id} = GenServer.call(server, :get, :infinity)
  ^octets = id |> byte_size() |> Integer.to_string()
  {:ok, text} = GenServer.call(server, {:get, :canonical}, :infinity)
  {:ok, [{:time, ms} | _]} = GenServer.call(server, {:decompose, List.to_string(text)}, :infinity)
  true = abs(ms - System.os_time(:millisecond)) < 60_000
  {:ok, many} = GenServer.call(server, {:get_many, 5000}, :infinity)
  true = many == Enum.sort(many) and many == Enum.uniq(many) and hd(many) > id
end

metas =
  for meta <- [0, 7, 255] do
    {:ok, id} = GenServer.call({:snos, node}, {:get, :meta, meta}, :infinity)
    {:ok, fields} = GenServer.call({:snos, node}, {:decompose, id}, :infinity)
    fields[:meta]
  end

[0, 7, 255] = metas
{:error, :badarg} = GenServer.call({:snos, node}, {:get, :meta, 256}, :infinity)
{:error, :badarg} = GenServer.call({:snowflakes, node}, {:get, :meta, 1}, :infinity)
IO.puts("CHECK formats ok")
