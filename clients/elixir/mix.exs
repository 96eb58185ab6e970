defmodule FlakeClient.MixProject do
  use Mix.Project

  @version "0.1.0"
  @source_url "https://github.com/flake-go/flake"

  def project do
    [
      app: :flake_client_elixir,
      version: @version,
      elixir: "~> 1.10",
      deps: deps(Mix.env()),
      description: "Unique, time-ordered ids from flake nodes",
      package: [
        licenses: ["Apache-2.0"],
        links: %{"GitHub" => @source_url}
      ],
      docs: [
        main: "readme",
        extras: ["README.md"],
        source_url_pattern: "#{@source_url}/blob/v#{@version}/clients/elixir/%{path}#L%{line}"
      ]
    ]
  end

  def application, do: [extra_applications: [:logger]]

  defp deps(env), do: [flake_client(Path.expand("../erlang/flake_client", __DIR__)) | others(env)]

  # The same release of flake_client: next to this folder in the repository, on Hex elsewhere.
  defp flake_client(path) do
    if File.dir?(path),
      do: {:flake_client, path: path, manager: :rebar3},
      else: {:flake_client, "~> #{@version}"}
  end

  # The tests have a stand-in with Ecto's callbacks, so they do not need Hex.
  defp others(:test), do: [{:ecto, path: "test/ecto"}]

  defp others(_) do
    if Code.ensure_loaded?(Hex),
      do: [{:ecto, "~> 3.5", optional: true}, {:ex_doc, "~> 0.34", only: :dev, runtime: false}],
      else: []
  end
end
