// Package flake makes 128-bit ids that sort by the time they were made and
// that are never handed out twice, without asking any other machine. The ids
// are those of the Erlang server boundary/flake.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|               milliseconds since 1970-01-01 UTC               |
//	|                            64 bits                            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            worker                             |
//	|            48 bits            |       sequence, 16 bits       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// All three are big-endian, so ids compare as bytes. The sequence is 0 for the
// first id of a millisecond.
//
// Start from [New], which needs nothing set up and promises less; from [Open], a
// generator whose ids stay unique across crashes, restarts and a clock set back, or
// from [NewGenerator], which remembers nothing once the process has ended; and from
// [ID]. What only needs ids asks for a [Nexter]. Packages snowflake and sno have the
// same functions and methods for ids of their formats, and the errors of this one.
//
// Uniqueness rests on one rule the package cannot check: no two generators
// share a worker id, which New makes up. The package makes no randomness part of
// each id, so ids can be guessed; they are names, not secrets.
package flake
