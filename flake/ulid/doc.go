// Package ulid makes ULIDs (https://github.com/ulid/spec) that are never handed out
// twice, without asking any other machine, and strictly ascend.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|               milliseconds since 1970-01-01 UTC               |
//	|            48 bits            |       sequence, 16 bits       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            worker                             |
//	|            48 bits            |        random, 16 bits        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
//	sequence  of the generator within the millisecond, from 0
//	worker    the generator's
//	random    anew for each id
//	text      26 digits of 0123456789ABCDEFGHJKMNPQRSTVWXYZ, Crockford's base 32
//
// Ids compare as bytes, and so do their texts. The spec has 80 random bits after the
// time, which a monotonic generator counts up; here they are the last three fields.
//
// Start from [New], which needs nothing set up and promises less; from [Open], a
// generator whose ids stay unique across crashes, restarts and a clock set back, or
// from [NewGenerator], which remembers nothing once the process has ended; and from
// [ID]. The errors are those of package flake.
//
// Uniqueness rests on one rule the package cannot check: no two generators share a
// worker id. Against ULIDs whose 80 bits are random this gives up two things. Whoever
// sees an id sees its worker, which is a MAC address if you take one; and ids can be
// guessed, as 16 bits are soon tried: they are names, not secrets.
package ulid
