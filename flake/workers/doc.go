// Package workers assigns each node of a fleet a number that no other node has, from a store
// that the nodes share. It also limits the ids of each node so that no two nodes ever make the
// same id, whatever happens to the nodes, their clocks, the network and the store.
//
// [Open] claims a number and keeps it. A [Claim] is the Bound, in flake.Options, of the
// generators that make ids with the number. This package needs only the three methods of
// [Store], which the packages below this one implement.
//
// # The mark is the fence
//
// The store has one key for each number, with no lease. Its [Value] holds a mark, the latest
// time an id with the number may have, and the random token of the claim.
//
//   - To claim a number, a node replaces the value that it read, by compare-and-swap, with
//     one that has a new token and a mark that is hold ahead of its clock. Its ids begin
//     above the old mark, at most hold behind its clock, and never pass the new mark.
//   - Three times per hold the node moves the mark, by compare-and-swap with the value it knows.
//   - If a write gets no answer, the node reads the value. Its token says whether another
//     node has claimed the number.
//   - If the value belongs to another node, the number is lost, and this node claims another.
//     If the other node's ids begin above this node's mark, this node may still make ids up to
//     its mark; otherwise it makes no more ids with the number.
//   - If the value has the node's token but the node never wrote it, it belongs to a copy of
//     the node, and the number is lost.
//
// A node compares the time in each id with the mark, never a clock with a deadline. So a
// process may be paused anywhere, for any time. Clocks decide only which nodes count as
// dead: a node whose clock is far ahead claims numbers that are in use, and their owners lose
// them, but no id repeats. [Release] frees such a number. The ids of its claim began near the
// wrong clock's time, so other nodes can use the time before these ids. The time from there to
// the claim's mark stays recorded in the value as spent.
//
// A swap compares values, not revisions, because a store restored from a snapshot repeats
// revisions.
//
// # A restart
//
// When a node stops cleanly, it erases its token and then lowers the mark to its last id. After a
// crash the mark is up to hold ahead. A node that still has its disk can nevertheless continue
// immediately: the disk contains the token ([Memory]) and the generators' mark, which is nearer to
// the clock. The node gets a new token, so only one of two copies of a disk gets the number, and
// only a copy that knows the last mark. Until one of the copies loses the number, both make the
// same ids: do not start a node on a copy.
//
// The disk also contains the [Place] of the node's last number, even after a clean stop. The node
// claims no number at another place until [AfterRestore] has recorded that the numbers moved there.
//
// # A store restored from a snapshot
//
// Such a store has forgotten marks. [AfterRestore] makes up for them, if called before nodes reach
// the store: it writes the floor, a mark for all numbers. Every claim begins above the floor. Every
// write of a claim or an extension compares the floor too. An owner whose mark had passed when the
// floor was written claims again.
//
// An owner that finds an older value in place of its own writes the floor by itself, and its own
// value again. So does an owner whose store is [Restorable] and has noticed the restore. Ids of
// claims made before that may repeat.
//
// The floor also names the places of the numbers: the current one, and former ones. If it does not
// name the current one, or is missing although numbers were claimed, a node writes it before it
// claims a number.
//
// # Keys that were deleted
//
// Each claim writes a second key, which says that the number was used. If a number's own key is
// deleted, its owner writes it again. Nodes that see only the second key claim the number once the
// owner's mark must have passed. If all keys are deleted, the store looks new, and ids may repeat.
package workers
