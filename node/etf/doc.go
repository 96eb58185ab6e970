// Package etf reads and writes the Erlang External Term Format, the bytes in which Erlang nodes send terms:
// https://www.erlang.org/doc/apps/erts/erl_ext_dist.html
//
// Start from [Reader], a bounds-checked cursor that takes a message apart without allocating, or from
// [Decode] and [Append], which turn the bytes of one term into a [Term] and back.
//
// [FormatRaw] and [Format] print a term on one line for logs. The text of the Erlang shell is package erltext's.
//
// Every tag of the chapter is read, the old ones too; which tags are written depends on [Caps], what the
// peer knows. Not supported, and refused: compressed terms, atom cache references (distribution headers)
// and LOCAL_EXT. Not checked: whether the keys of a map are distinct.
//
// Input is hostile until shown otherwise: whatever the bytes are, the answer is a value or a [SyntaxError],
// a length is believed only if the bytes left can hold it, and nothing recurses deeper than [MaxDepth].
//
// A Reader owns nothing: the slices it returns are parts of its source, valid as long as that is. A Term
// owns its bytes. The Append functions extend dst and keep nothing.
package etf
