// Package uuidv7 makes UUIDs of version 7 (RFC 9562 section 5.7) that are never handed
// out twice, without asking any other machine, and strictly ascend.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|               milliseconds since 1970-01-01 UTC               |
//	|            48 bits            |  ver  |   sequence, 12 bits   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|var|                          worker                           |
//	|              48 bits              |      random, 14 bits      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
//	ver       0111, version 7
//	sequence  rand_a: of the generator within the millisecond, from 0; a counter of fixed
//	          length right after the time (section 6.2, method 1)
//	var       10, the variant
//	worker    the upper bits of rand_b: the generator's (section 6.4)
//	random    the rest of rand_b, anew for each id
//	text      32 hexadecimal digits, lower case, as 8-4-4-4-12
//
// Ids compare as bytes, and so do their texts.
//
// Start from [New], which needs nothing set up and promises less; from [Open], a
// generator whose ids stay unique across crashes, restarts and a clock set back, or
// from [NewGenerator], which remembers nothing once the process has ended; and from
// [ID]. The errors are those of package flake.
//
// Uniqueness rests on one rule the package cannot check: no two generators share a
// worker id. Against UUIDs whose 74 bits are random this gives up two things. Whoever
// sees an id sees its worker, which is a MAC address if you take one; and ids can be
// guessed, as 14 bits are soon tried: they are names, not secrets.
package uuidv7
