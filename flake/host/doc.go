// Package host keeps the guarantee of one node: of all ids that its generators make,
// whatever their formats and wherever their numbers come from, none is made twice.
//
// For each number the intervals (after, mark] of its claims are disjoint, and each id's time
// is in that of the claim it was made with. [Generators] are those of a node with the file
// that has their marks and the number from a store, if one is wanted. They are opened, moved to
// another number, and closed as one.
//
//	clock ---------------------------------------------------------> time
//	        after               ids          mark on      mark in
//	          |                  |           the disk     the store
//	----------(==================|===========]------------]-------
//	          |                  |           |            |
//	          |                  |           |            no mark on the disk passes it
//	          |                  |           no id passes it; a start begins above it
//	          |                  the latest of all generators: the number is given back at it
//	          the marks of the claim before, of the floor, and of what the disk has
//
// A number that is lost to a claim which begins above its mark is used up to there, while the
// generators wait for the next. One that a copy of this node has, or that a restored store
// has dealt out anew, ends at once.
//
// [Check] reports, without a change, what a start would do.
package host
