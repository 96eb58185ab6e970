defmodule FlakeClient.Error do
  @moduledoc """
  No id, and why.

      iex> reason = {:no_node_available, ["flake@a": :nodedown, "flake@b": :clock_behind]}
      iex> Exception.message(%FlakeClient.Error{reason: reason})
      "no node gives ids: flake@a (nodedown), flake@b (clock_behind)"
  """

  @type t :: %__MODULE__{reason: FlakeClient.failure()}

  defexception [:reason]

  @impl true
  def message(%{reason: {:no_node_available, nodes}}) do
    "no node gives ids: " <> Enum.map_join(nodes, ", ", fn {node, why} -> "#{node} (#{why})" end)
  end

  def message(%{reason: {:not_started, client}}), do: "no client #{inspect(client)} runs"
  def message(%{reason: :badarg}), do: "an argument is not what is allowed"
end
