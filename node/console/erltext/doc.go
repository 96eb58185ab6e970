// Package erltext reads and prints terms as text, as the Erlang shell does: https://www.erlang.org/doc/man/shell.html
//
// [Parse] reads expressions and [Pretty] prints a value, with the error texts and line breaks of Erlang/OTP 25.
// An evaluator of expressions also needs [Kind.Term], [Compare] and [Split]. The text of logs is that of
// etf.FormatRaw.
package erltext
