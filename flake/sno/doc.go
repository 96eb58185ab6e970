// Package sno makes 80-bit ids that sort by the time they were made, carry a
// byte of the caller's and go on when the clock is set back. They are those of
// github.com/muyo/sno v1.2.1, bytes and text.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        4 ms since 2010-01-01 UTC, up to 2079-09-07 UTC        |
//	+           39 bits           +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|             |T|   metabyte    |           partition           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           sequence            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
//	T           the tick-tock bit: flips whenever the clock is set back
//	metabyte    the program's own: see [ID.WithMeta]
//	partition   the generator's
//	sequence    of the generator within the 4 ms, from its lower bound
//	text        16 digits of 23456789abcdefghijklmnopqrstuvwx
//	ids         65,536 in 4 ms: 16,384,000 a second of a partition, then calls wait
//
// All are big-endian, so ids compare as bytes, and texts as ids do.
//
// The first time that the clock is set back, ids go on in that past at once, with
// the other T. If it is set back again into a time for which both were used, there
// are none until it is over: see [Generator.CatchUp].
//
// Where the peer returns an id that means nothing, this package returns an error: of
// a clock or time that ids cannot have, of a text that is no id's. Where the peer
// waits for a clock that is behind, it returns an error too. The peer takes the zero
// value for none, which is null in JSON; here it is an id like others. [Epoch] and
// [Overflow] count in other units than the peer's.
//
// Start from [Open], a generator whose ids stay unique across crashes, restarts and a
// clock set back; from [New], which needs nothing set up and promises little; from
// [NewGenerator], which remembers nothing once the process has ended, unless its
// [Snapshot] is kept; and from [ID]. The errors are those of package flake, and
// [BoundsError] and [ErrPartitionsExhausted].
//
// Uniqueness rests on one rule the package cannot check: no two generators that
// share a partition share a sequence number. Ids can be guessed; they are names,
// not secrets.
package sno
