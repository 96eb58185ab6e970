// Package handshake carries out the Erlang distribution handshake, by which
// two nodes tell each other their names and abilities and prove that they hold
// the same cookie.
//
// It implements the chapter "Distribution Handshake" of
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html, in version 6
// (OTP 23 and later) and version 5 (older nodes, Scalang), both ways round:
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
// Start at [Accept] and [Start]; both give a [Peer]. Whether a node may come in
// is the caller's to say, through [Options.Admit].
//
// Exactly the bytes of the handshake are read from the stream, so that what
// follows them is left for the connection. Not supported: dialling without a
// name of our own (NAME_ME from our side); a peer that asks for a name gets one.
package handshake
