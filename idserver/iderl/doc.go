// Package iderl is flake's door for Erlang: a request, an external term, becomes a call
// of a method of [idserver.Server], and what that returns a reply.
//
//	handler.go    the calls, what each is answered, and when
//	request.go    an external term as a request
//	reply.go      what an id server returns as external terms
//	timer.go      the server that keeps the time
//	functions.go  the functions that nodes call by rpc
//	util.go       those of flake_util
//
// Servers and functions have the original's names. Start at [Handler.HandleCall].
package iderl
