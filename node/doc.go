// Package node is an Erlang node in Go. Start at [Start].
//
// This is the way of one call, from socket to socket:
//
//	1 socket   accept, TLS        node              many at a time, under one deadline each
//	2 peer     names and cookie   node/handshake    exactly its bytes are read
//	3 frame    4-byte length      node/dist         one reader a connection, in order; ticks
//	4 message  control + payload  node/dist         a table of operations
//	5 call     $gen_call, From    genserver         pid and tag stay the bytes that came
//	6 id       the request        idserver/iderl    a method of idserver for each
//	7 reply    {Tag, Reply}       genserver         appended to the connection's output
//	8 socket   write              node/dist         once for all that had arrived
//
// Registered gen_servers are answered in line, by whoever reads the connection:
// no mailbox that can be full, no goroutine or channel for a call. The processes
// behind them are Ergo's, which starts them, gives them pids and supervises them:
// see node/ergo. Connections, and who watches whom, are the node's own.
//
// # Glossary
//
// One thing has one name, in code, comments, logs and documents. Names of the
// protocol are OTP's, and need no entry here.
//
//	node        an Erlang node: this one, unless another is named
//	peer        the node at the other end of a connection, or a program that acts as one
//	caller      whoever makes a call: a process of a peer, or a program over HTTP
//	connection  a socket to a peer that has shown the cookie
//	frame       a length and that many bytes, the unit in which peers write
//	message     a control message, with the payload that may follow it
//	process     what has a pid here: a server, a supervisor, or a function that a peer has spawned
//	server      a process that answers calls under a name, as OTP's gen_server does
//	function    what rpc can reach: an entry of a table
//	call        a request that wants a reply
//	request     what a call asks
//	reply       what a call is answered
//	door        a way by which calls reach the generators: the Erlang door, the HTTP door
//
//	generator   makes ids of one format as one worker
//	format      the fields of an id and its texts: flake, flake-idgen, snowflake, sno
//	worker      the field that says who made an id; snowflake's machine, sno's partition
//	sequence    the field that tells the ids of one tick apart
//	tick        the unit of a format's time; an empty frame of the distribution is a net tick
//	run         ids that follow each other: the first, and how many
//	lease       runs that a caller hands out by itself
//	turn        the moment when one of several large calls takes its next share of ids
//	mark        the time on disk that no id goes past
//
//	pool        the memory that all connections share
//	host        an address, in IPv6 a network of 64 bits, as limits count it
//	thread      a thread of the system; what Go schedules is a goroutine
//	byte        eight bits; OTP's documents say byte
package node
