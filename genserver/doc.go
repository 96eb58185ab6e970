// Package genserver is a gen_server as its callers see it: what OTP's
// gen_server:call and cast send, and the replies that they wait for.
//
// A [Handler] does what a callback module does. [Server.Receive] parses a message
// and calls the Handler. Both may run on many goroutines at once. A [Call] holds its
// request and is answered now or later; its [Caller], a connection, decides when and
// with what memory.
//
// The messages are those of OTP's gen.erl and gen_server.erl:
//
//	{'$gen_call', {Pid, Tag}, Request}   answered by {Tag, Reply} to Pid
//	{'$gen_cast', Request}
//	{system, {Pid, Tag}, Request}        of module sys: get_state, get_status
//	anything else                        handle_info
//
// A Tag is any term, usually a reference or [alias | Reference]. It is echoed byte
// for byte. With an alias the reply goes to the alias, so a reply that arrives after
// the caller's timeout is dropped on the way.
package genserver
