// Package console is a prompt like that of erl, the Erlang shell, over functions that are given to it:
// https://www.erlang.org/doc/man/shell.html
//
// Start from [New] and [Console.Run], or from [Eval] for a single answer. What is typed are terms, calls of the functions, variables and
// matches; results and errors are in the words, and with the line breaks, of Erlang/OTP 25.
//
// On a terminal, lines are edited and remembered by golang.org/x/term, Ctrl-C opens the BREAK menu, and a
// Console is an io.Writer for what else is to appear there, such as logs. Otherwise input is read as it is.
//
// Not supported: operators, funs, records, job control (Ctrl-G), v(N) and the other commands of erl that are
// not in help().
package console
