defmodule Orders.MixProject do
  use Mix.Project

  def project do
    [
      app: :orders,
      version: "0.1.0",
      elixir: "~> 1.10",
      deps: [{:flake_client_elixir, path: ".."}]
    ]
  end

  def application, do: [mod: {Orders, []}]
end
