// Package epmd speaks the protocol of EPMD, the Erlang port mapper daemon, as described in the
// chapter "Protocol between EPMD and Erlang nodes" of the distribution protocol:
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html
//
// Start at [Keeper], which keeps one node registered with the EPMD of its host and provides an
// EPMD if there is none, and at [Lookup], which asks an EPMD for a node's port. [Server] is
// the embedded EPMD alone.
//
// Every message has Append, which appends its tag and payload to a slice, and Decode, which
// reads them back and keeps nothing of its source. The two-byte length before a request, but
// not before a reply, belongs to the stream and is added there.
//
// Not supported: the server never obeys KILL, STOP or DUMP and stays up when told to stop;
// requests of releases before R3 (ALIVE, PORT_PLEASE) close the connection.
package epmd
