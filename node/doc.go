// Package node is an Erlang node in Go. Start at [Start].
//
// A call travels from socket to socket like this:
//
//	1 socket   accept, TLS        node               many at a time, one deadline each
//	2 peer     names and cookie   node/handshake     reads exactly its own bytes
//	3 frame    4-byte length      node/distribution  one reader per connection, in order; ticks
//	4 message  control + payload  node/distribution  a table of operations
//	5 call     $gen_call, From    genserver          pid and tag are kept as received
//	6 id       the request        idserver/iderl     one method of idserver for each
//	7 reply    {Tag, Reply}       genserver          appended to the connection's output
//	8 socket   write              node/distribution  once for all calls that had arrived
//
// The goroutine or thread that reads a connection answers its calls to registered gen_servers
// itself: there is no mailbox to fill, and no goroutine or channel per call. Ergo starts the
// processes behind the gen_servers, gives them pids and supervises them: see node/ergo. Ergo has
// no part in connections, monitors and links.
//
// # Glossary
//
// One thing has one name, in code, comments, logs and documents. Names of the protocol are
// OTP's and need no entry here.
//
//	node        an Erlang node; this one, unless another is named
//	peer        the node, or a program acting as one, at the other end of a connection
//	caller      a process of a peer, or a program over HTTP, that makes a call
//	connection  a socket to a peer that has proved it has the cookie
//	applicant   a peer that has dialed this node and is not connected yet
//	frame       a length and that many bytes; peers write in frames
//	message     a control message, and its payload if it has one
//	process     anything with a pid here: a server, a supervisor, a function spawned by a peer
//	server      a process that answers calls under a name, like OTP's gen_server; a child of its supervisor
//	function    an entry of the table that rpc can call
//	call        a request that expects a reply
//	request     what a call asks for
//	reply       the answer to a call
//	door        a way for calls to reach the generators: the Erlang door, the HTTP door
//	daemon      the process that runs the node, the generators and both doors
//
//	generator   makes ids of one format as one worker
//	format      the fields of an id and its text forms, such as flake, snowflake or ulid
//	worker      the field that identifies who made an id; called machine in snowflake, partition in sno
//	sequence    the field that distinguishes the ids of one tick
//	tick        the unit of a format's time; an empty frame of the distribution is a net tick
//	run         consecutive ids, given as the first id and a count
//	lease       runs of ids that a caller hands out itself
//	turn        the moment when one of several large calls takes its next share of ids
//	mark        a time that no id may pass, saved in a file and, for a number, also in the store
//	store       what nodes share, and what assigns their numbers
//	number      a worker that the store assigns
//	claim       a node's right to a number, from one mark to the next; also a process's right to a worker
//	hold        how far the mark of a number is ahead of the clock
//	limit       the time that no id of a generator may pass now: the lower of its mark and its bound
//	bound       what else limits the ids of a generator, such as the mark of its number
//	floor       a mark for all numbers, raised after the store is restored; it also names their places
//	place       where numbers are kept: a cluster of the store and a prefix
//	range       the ids that a generator can make, whatever their time
//	ordinal     an id without its random bits, as a number that grows by one within a run
//
//	pool        the memory that all connections share
//	allowance   the memory that a connection may hold without taking room in the pool
//	host        an address or, for IPv6, a /64 network, to which limits apply
//	thread      an operating system thread; what Go schedules is a goroutine
//	original    boundary/flake, the Erlang server that this node replaces
package node
