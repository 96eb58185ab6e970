// Package erltext reads and prints terms as text, as the Erlang shell does: https://www.erlang.org/doc/man/shell.html
//
// [Parse] reads expressions and [Pretty] prints a value, both in the words and with the line breaks of Erlang/OTP 25.
// [Kind.Term], [Compare] and [Split] are what an evaluator of expressions needs besides. The text of logs is not made
// here but by etf.FormatRaw.
package erltext
