// Package node is an Erlang node in Go. Start at [Start].
//
// This is the way of one call, from socket to socket:
//
//	1 socket   accept, TLS        node              many at a time, under one deadline each
//	2 peer     names and cookie   node/handshake    exactly its bytes are read
//	3 frame    4-byte length      node/dist         one reader a connection, in order; ticks
//	4 message  control + payload  node/dist         a table of operations
//	5 call     $gen_call, From    genserver         pid and tag stay the bytes that came
//	6 id       the methods        flake/flakeserver
//	7 reply    {Tag, Reply}       genserver         appended to the connection's output
//	8 socket   write              node/dist         once for all that had arrived
//
// Registered gen_servers are answered in line, by whoever reads the connection:
// no mailbox that can be full, no goroutine or channel for a call. The processes
// behind them are Ergo's, which starts them, gives them pids and supervises them:
// see node/ergo. Connections, and who watches whom, are the node's own.
package node
