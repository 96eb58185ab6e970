// Package handshake performs the Erlang distribution handshake, in which two nodes
// exchange names and abilities and prove that they have the same cookie.
//
// It implements the chapter "Distribution Handshake" of
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html, in version 6 (OTP 23
// and later) and version 5 (older nodes, Scalang), in both directions:
//
//	A (Start)                        B (Accept)
//	send_name 'N' | 'n'       ->
//	                          <-     status 's'
//	status 's'                ->     only after "alive"
//	                          <-     challenge 'N' | 'n'
//	complement 'c'            ->     only after 'n' was answered by 'N'
//	challenge_reply 'r'       ->
//	                          <-     challenge_ack 'a'
//
// Start at [Accept] and [Start]; both return a [Peer]. The caller decides whether a
// node may come in, through [Options.Admit].
//
// The package reads only the handshake's bytes from the stream; what follows is left
// for the connection. Not supported: dialling without a name of our own (NAME_ME from
// our side). A peer that asks for a name gets one.
package handshake
