// Package dist speaks the protocol between two connected Erlang nodes: frames,
// control messages, ticks, monitors and links.
//
// It implements the chapter "Protocol between Connected Nodes" of
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html. Start at [Proto] and [Conn].
//
// One goroutine reads a connection. It takes what has arrived, handles frame by
// frame in order, appends the answers to the connection's output, and when
// nothing more has arrived writes them all at once. Signals of one sender thus
// keep their order, as Erlang promises, and many calls share one write. While
// it writes it does not read: a peer that does not take its answers is not
// listened to, and is cut off by the deadline of the write. A second goroutine
// ticks, and writes what was appended outside the reader.
//
// To decode a call and make an id costs little; to be woken for it and to write
// its answer costs most. So the reader of a busy connection is a thread that
// runs where its callers do, as package socket tells. There is no goroutine,
// channel or timer a call. A message is gone through once, by who receives it, see
// [Process].
//
// A [Message] is answered at once, or later: what is built aside does not hold up the
// reader. What its process asks that server meanwhile waits behind it, so that a
// process is answered in the order of its calls: see [Message.SendInTurn]. Answers to
// another node than the peer, for which that one passed a call on, go there; it is
// connected to if it is not.
//
// References, and pids in answers, go back as the bytes that came. A frame
// that cannot be framed ends its connection; a message that cannot be decoded
// is logged and dropped, and the connection goes on.
//
// A process that a peer spawns here is a goroutine that calls [Proto.Spawn].
//
// What connections hold beyond what an ordinary call needs is counted in one pool,
// each part of a connection having an account: see [MaxShared].
//
// Not supported, and not offered in the handshake: distribution headers and
// the atom cache, fragments.
package dist
