defmodule Orders do
  @moduledoc """
  Orders that are numbered by a flake node. While a node is running, try it with:

      elixir --name orders@127.0.0.1 --cookie flake -S mix run -e Orders.demo
  """
  use Application

  @impl true
  def start(_type, _args) do
    children = [{FlakeClient, Application.fetch_env!(:orders, FlakeClient)}]
    Supervisor.start_link(children, strategy: :one_for_one)
  end

  @doc "An order with its own number, or the reason why it did not get one."
  @spec new(String.t()) ::
          {:ok, %{number: FlakeClient.text(), item: String.t()}} | {:error, FlakeClient.failure()}
  def new(item) do
    with {:ok, number} <- FlakeClient.id(base: :canonical),
         do: {:ok, %{number: number, item: item}}
  end

  @doc "When an order was made, according to its number."
  @spec time(%{number: FlakeClient.text()}) :: DateTime.t()
  def time(%{number: number}) do
    FlakeClient.decompose!(number)[:time] |> DateTime.from_unix!(:millisecond)
  end

  @doc false
  def demo do
    for item <- ["tea", "milk", "sugar"] do
      {:ok, order} = new(item)
      IO.puts("#{order.number}  #{time(order)}  #{item}")
    end
  end
end
