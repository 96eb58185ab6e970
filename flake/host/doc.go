// Package host keeps the guarantee of one node: its generators, whatever their formats and
// wherever their numbers come from, never repeat an id.
//
// For each number the intervals (after, mark] of its claims are disjoint, and the time of each
// id is in the interval of its claim. [Generators] are all generators of a node, with the file
// of their marks and, if configured, the number from a store. They are opened, moved to
// another number, and closed together.
//
//	clock ---------------------------------------------------------> time
//	        after               ids          mark on      mark in
//	          |                  |           the disk     the store
//	----------(==================|===========]------------]-------
//	          |                  |           |            |
//	          |                  |           |            no mark on the disk passes it
//	          |                  |           no id passes it; the next start begins above it
//	          |                  the latest id of all generators; a clean stop returns the number here
//	          the highest mark of the previous claim, the floor, and the disk
//
// If a number is lost to a claim that begins above its mark, generators use it up to the mark
// while they wait for the next number. If a copy of this node has the number, or a restored
// store has assigned it again, they stop at once.
//
// [Check] reports what a start would do, and changes nothing.
package host
