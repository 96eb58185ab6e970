// Package dist speaks the protocol between two connected Erlang nodes: frames, control
// messages, ticks, monitors and links.
//
// It implements the chapter "Protocol between Connected Nodes" of
// https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html. Start at [Proto] and
// [Conn].
//
// One goroutine reads a connection. It takes what has arrived, handles frame by frame
// in order, appends the answers to the connection's output, and writes them all at
// once when nothing more has arrived. So signals of one sender keep their order, as
// Erlang promises, and many calls share one write. While it writes it does not read:
// the node does not listen to a peer that does not read its answers, and the deadline
// of the write cuts it off. A second goroutine ticks, and writes what others than the
// reader appended.
//
// Decoding a call and making an id cost little; waking up for the call and writing its
// answer cost most. So a thread near the callers reads a busy connection, as package
// socket explains. A call needs no goroutine, channel or timer. Its message is parsed
// once, by its receiver: see [Process].
//
// A [Message] is answered at once or later. An answer built aside does not hold up the
// reader. What its process asks that server meanwhile waits behind it, so a process
// gets answers in the order of its calls: see [Message.SendInTurn]. If the peer passed
// a call on for another node, the answer goes to that node, which is connected first
// if necessary.
//
// References, and pids in answers, go back byte for byte. A malformed frame ends its
// connection; a message that cannot be decoded is logged and dropped, and the
// connection goes on.
//
// A process that a peer spawns here is a goroutine that calls [Proto.Spawn].
//
// One pool counts what connections hold beyond the needs of an ordinary call; each
// part of a connection has an account: see [MaxShared].
//
// Not supported, and not offered in the handshake: distribution headers and the atom
// cache, fragments.
package dist
