defmodule OrdersTest do
  use ExUnit.Case, async: true

  test "orders have increasing numbers, which contain the time" do
    before = DateTime.utc_now() |> DateTime.truncate(:millisecond)

    orders =
      for item <- ["tea", "milk", "sugar"] do
        {:ok, order} = Orders.new(item)
        order
      end

    ids = for %{number: number} <- orders, do: FlakeClient.from_text!(number)
    assert ids == Enum.uniq(Enum.sort(ids))
    for order <- orders, do: assert(DateTime.compare(Orders.time(order), before) != :lt)
  end
end
