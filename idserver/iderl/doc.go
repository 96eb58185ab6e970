// Package iderl is flake's Erlang door: it turns a request, an external term, into a
// call of a method of [idserver.Server], and the result into a reply.
//
//	handler.go    the calls, what each is answered, and when
//	request.go    an external term as a request
//	reply.go      an id server's results as external terms
//	timer.go      the server that keeps the time
//	functions.go  the functions that nodes call by rpc
//	util.go       those of flake_util
//
// Servers and functions have the original's names. Start at [Handler.HandleCall].
package iderl
