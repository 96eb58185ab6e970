import Config

config :orders, FlakeClient, nodes: [:"flake@127.0.0.1"], lease: [size: 1000, max_age: 100]

if config_env() == :test do
  config :orders, FlakeClient, nodes: [:in_process]
end
