// Package console is a prompt like that of erl, the Erlang shell, over given functions:
// https://www.erlang.org/doc/man/shell.html
//
// Start at [New] and [Console.Run], or at [Eval] for a single answer. Users type terms, calls of the
// functions, variables and matches; results and errors have the words and line breaks of Erlang/OTP 25.
//
// On a terminal, golang.org/x/term edits and remembers lines, Ctrl-C opens the BREAK menu, and a Console is an
// io.Writer for other output there, such as logs. Otherwise input is read as it is.
//
// Not supported: operators, funs, records, job control (Ctrl-G), v(N) and the other commands of erl that are
// not in help().
package console
