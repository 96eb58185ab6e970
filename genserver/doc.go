// Package genserver is a gen_server as its callers see it: what OTP's
// gen_server:call and cast send, and the answers that they wait for.
//
// A [Handler] holds what a callback module holds. [Server.Receive] takes a
// message apart and calls it; it may run on many goroutines at once, and so may
// the Handler. A [Call] knows its request and how to answer it: now, or later. When
// that is, and with what memory, is for the [Caller] to say, a connection.
//
// The messages are those of OTP's gen.erl and gen_server.erl:
//
//	{'$gen_call', {Pid, Tag}, Request}   answered by {Tag, Reply} to Pid
//	{'$gen_cast', Request}
//	{system, {Pid, Tag}, Request}        of module sys: get_state, get_status
//	anything else                        handle_info
//
// A Tag is any term, most often a reference or [alias | Reference]. It is
// echoed as the bytes that came; with an alias the answer goes to the alias,
// so that one which comes after the caller's time-out is dropped on its way.
package genserver
