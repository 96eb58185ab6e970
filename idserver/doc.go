// Package idserver holds what can be asked of a generator: the methods of a
// [Server], which are the same for every [formats.Format] of ids, and count what they are
// asked. The doors call these methods, and write ids as their callers want them: for
// Erlang package iderl, for HTTP package idhttp.
package idserver
