// Package snowflake makes 64-bit ids that sort by the time they were made and
// that are never handed out twice, without asking any other machine: those of
// Twitter's snowflake and of flake-idgen 1.4.0 (npm), two layouts of one type.
//
//	           63  62                22 21     17 16     12 11          0
//	          +---+--------------------+---------+---------+-------------+
//	[Twitter] | 0 |  milliseconds, 41  |      machine, 10  | sequence, 12|  any split of the 22 bits
//	          +---+--------------------+---------+---------+-------------+
//	[Idgen]   |    milliseconds, 42    |datac., 5|worker, 5| sequence, 12|
//	          +------------------------+---------+---------+-------------+
//
//	                     Twitter                     Idgen
//	time                 41 bits, ms since Epoch     42 bits, ms since Epoch
//	Epoch                2010-11-04T01:42:54.657Z    1970-01-01T00:00:00Z, unless set
//	years that fit       2010 to 2080                1970 to 2109
//	machine              0 to 1023                   0 to 1023, datacenter*32 + worker
//	ids a millisecond    4096                        4096, or what seqMask leaves
//	highest bit          always 0                    1 from 2039 on, with the epoch of 1970
//
// An id is a number; its bytes are big-endian, so ids of one layout and epoch
// compare as numbers and as bytes.
//
// Start from [Layout.Open], a generator whose ids stay unique across crashes,
// restarts and a clock set back, or from [Layout.NewGenerator], which remembers
// nothing once the process has ended; and from [ID] for its texts. The errors are
// those of package flake.
//
// Uniqueness rests on one rule the package cannot check: no two generators share
// a machine. Ids can be guessed; they are names, not secrets.
//
// Where flake-idgen does something else: it masks a datacenter, a worker, an id
// and a seqMask that are out of range without a word, and takes the id where a
// datacenter is given too, while here each is an error; it repeats ids after a
// restart within a millisecond or with the clock set back; and in the very
// millisecond of its epoch it begins with sequence 1.
package snowflake
