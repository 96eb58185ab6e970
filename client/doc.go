// Package client takes ids from a flake node, over the Erlang distribution or over
// HTTP, and calls gen_servers and functions of any Erlang node, from a Go program that
// is not a node itself.
//
//	node := client.NewNode("flake@127.0.0.1", client.Dialer{Cookie: "flake"})
//	defer node.Close()
//	ids := client.NewIDs[flake.ID](node, "flake")
//	id, err := ids.Next(ctx)
//
// Start at [NewNode] or [NewHTTP], the two doors to a node, and at [IDs], which is the
// same behind both. [NewFailover] makes one door of several nodes. [IDs.Leased]
// returns ids without a round trip. A program that asks for a [flake.Nexter] accepts
// any of them, or a generator of its own. [Node.Call] and [Node.Apply] call anything
// else on a node. Package clienttest provides a node for tests.
package client
