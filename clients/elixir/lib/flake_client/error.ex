defmodule FlakeClient.Error do
  @moduledoc """
  The error of functions with `!`: `reason` says why there is no result.

      iex> reason = {:no_node_available, ["flake@a": :nodedown, "flake@b": :clock_behind]}
      iex> Exception.message(%FlakeClient.Error{reason: reason})
      "no node available: flake@a (nodedown), flake@b (clock_behind)"

      iex> reason = {:no_node_available, ["flake@a": :not_alive]}
      iex> Exception.message(%FlakeClient.Error{reason: reason})
      "no node available: flake@a (not_alive: this node is not distributed; start it with --name)"
  """

  @type t :: %__MODULE__{reason: FlakeClient.failure()}

  defexception [:reason]

  @impl true
  def message(%{reason: {:no_node_available, nodes}}) do
    "no node available: " <>
      Enum.map_join(nodes, ", ", fn {node, why} -> "#{node} (#{why(why)})" end)
  end

  def message(%{reason: {:not_started, client}}), do: "client #{inspect(client)} is not running"
  def message(%{reason: :badarg}), do: "invalid argument"

  defp why(:not_alive), do: "not_alive: this node is not distributed; start it with --name"
  defp why(why), do: why
end
