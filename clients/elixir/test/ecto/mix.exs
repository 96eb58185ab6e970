defmodule Ecto.MixProject do
  use Mix.Project

  def project, do: [app: :ecto, version: "3.5.0"]
end
