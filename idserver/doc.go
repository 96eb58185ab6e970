// Package idserver holds what can be asked of a generator: the methods of a
// [Server], which are the same for every [Format] of ids, and count what they are
// asked. Whoever has a way for others to ask calls these methods, and writes ids as the
// others want them.
//
// The package also holds the way for Erlang's callers: a Server is a gen_server, see
// [Server.HandleCall], and the functions of the original, see [Server.Functions].
package idserver
