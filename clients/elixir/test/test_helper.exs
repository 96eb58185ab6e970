# clients/test starts the node FLAKE_NODE for the tests.
{:ok, _} = Node.start(:"flake_client_elixir_test@127.0.0.1")
true = Node.set_cookie(:flake)
ExUnit.start()
{:ok, _} = FlakeClient.start_link(nodes: [String.to_atom(System.fetch_env!("FLAKE_NODE"))])
