defmodule FlakeClient.MixProject do
  use Mix.Project

  def project do
    [
      app: :flake_client_elixir,
      version: "0.1.0",
      elixir: "~> 1.10",
      deps: deps(Mix.env()),
      description: "Unique, time-ordered ids from flake nodes",
      package: [
        licenses: ["Apache-2.0"],
        links: %{"GitHub" => "https://github.com/flake-go/flake"}
      ]
    ]
  end

  def application, do: [extra_applications: [:logger]]

  defp deps(env),
    do: [{:flake_client, path: "../erlang/flake_client", manager: :rebar3} | ecto(env)]

  # The tests have a stand-in, with the callbacks of Ecto's; so they need no Hex.
  defp ecto(:test), do: [{:ecto, path: "test/ecto"}]

  defp ecto(_) do
    if Code.ensure_loaded?(Hex), do: [{:ecto, "~> 3.5", optional: true}], else: []
  end
end
