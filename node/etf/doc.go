// Package etf reads and writes the Erlang External Term Format, in which Erlang nodes send terms:
// https://www.erlang.org/doc/apps/erts/erl_ext_dist.html
//
// Start at [Reader], a bounds-checked cursor that parses a message without allocating, or at [Decode] and
// [Append], which turn the bytes of one term into a [Term] and back.
//
// [FormatRaw] and [Format] print a term on one line for logs. Package erltext prints the text of the Erlang
// shell.
//
// Every tag of the chapter is read, old ones included; [Caps], what the peer knows, decides which tags are
// written. Not supported, and refused: compressed terms, atom cache references (distribution headers) and
// LOCAL_EXT. Not checked: whether the keys of a map are distinct.
//
// Input is hostile until shown otherwise: whatever the bytes, the answer is a value or a [SyntaxError], a
// length is believed only if the remaining bytes can hold it, and nothing recurses deeper than [MaxDepth].
//
// A Reader owns nothing: the slices it returns are parts of its source, and live as long. A Term owns its
// bytes. The Append functions extend dst and keep nothing.
package etf
