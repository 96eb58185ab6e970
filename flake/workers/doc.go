// Package workers gives each node of a fleet a number that no other node has, from a
// store that they share, and limits the node's ids so that no two nodes ever make the same
// id, whatever happens to the nodes, their clocks, the network and the store.
//
// [Open] claims a number and keeps it. A [Claim] is the bound of the generators that
// make ids with the number: see flake.Options. A [Store], such as that of package
// workers/etcd, has three methods; this package needs nothing else from it.
//
// # The mark is the fence
//
// The store has one key for each number, with no lease. Its [Value] holds a mark, a time
// that no id with the number may pass, and the random token of the claim.
//
//   - To claim a number, a node replaces the value that it read, by compare-and-swap, with
//     one that has a new token and a mark hold ahead of its clock. Its ids begin above the
//     old mark, at most hold before its clock, and do not pass the new one.
//   - Every third of hold the node moves the mark, by compare-and-swap with the value it knows.
//   - If a write gets no answer, the node reads the value: one with its token is its own.
//   - If the value belongs to another node, the number is lost, and the node claims another.
//     Ids up to the mark remain its own if the other node's begin above it; otherwise the
//     node makes no more ids with the number.
//   - A value with its token that it never wrote belongs to a copy of the node, and the
//     number is lost.
//
// The time in each id is compared with the mark, never a clock with a deadline. So a
// process may be paused anywhere, for any time. Clocks decide only which nodes count as
// dead: a node whose clock is far ahead takes numbers that are in use, and their owners
// lose them, but no id repeats. [Release] frees such a number: the claim began near the
// wrong clock, so the time before is free for others, and the time from there to its mark
// stays in the value as spent.
//
// Values are compared and not revisions, since a store restored from a snapshot repeats
// revisions.
//
// # A restart
//
// A clean stop lowers the mark to the last id, after the node has erased its token. After a
// crash the mark is up to hold ahead. A node that still has its disk continues at once anyway:
// the disk contains the token ([Memory]) and the generators' mark, which is nearer. The node
// gets a new token, so of two copies of a disk only one gets the number, and a copy that does
// not know the last mark does not get it. Until then a copy makes the same ids: do not start
// one.
//
// # A store restored from a snapshot
//
// Such a store has forgotten marks. An owner that finds an older value in place of its own
// writes its own again. [AfterRestore] repairs the rest, if called before nodes
// reach the store: it writes the floor, a mark for all numbers.
// Every claim begins above the floor, every claim and extension compares it, and an owner
// whose mark had passed when the floor was written claims again. An owner whose store is
// [Restorable] writes the floor itself when it notices; ids of claims made before that may
// repeat.
package workers
