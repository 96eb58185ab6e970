// Package workers gives each node of a fleet a number that no other has, out of a
// store that they share, and limits the node's ids so that no two nodes ever make
// one id, whatever happens to the nodes, their clocks, the network and the store.
//
// [Open] claims a number and keeps it. A [Claim] is the bound of the generators that
// make ids with it: see flake.Options. A [Store], such as that of package workers/etcd,
// has three methods, and this package needs nothing else.
//
// # The mark is the fence
//
// There is one key for each number, attached to no lease. Its [Value] holds a mark, a time
// that no id with the number is later than, and the random token of the claim.
//
//   - To claim a number a node compares the value that it read, and writes one with
//     a new token and a mark that is hold ahead of its clock. Its ids begin above the
//     mark that was there, at most hold before its clock, and do not pass the one it wrote.
//   - Every third of hold it moves the mark, comparing the value that it knows.
//   - Without an answer it reads again: a value with its token is its own.
//   - If the value is another's, the number is lost, and it claims another. The ids up to
//     the mark remain its own if the other's begin above; else there are no more.
//   - A value with its token that it never wrote is that of a copy of it, and the number
//     is lost.
//
// The time in each id is compared with the mark, never a clock with a deadline. So a
// process may be paused anywhere, for any time. Clocks decide only which nodes count as
// gone: a node whose clock is far ahead takes numbers that are in use, and their owners
// lose them, but no id comes twice. [Release] gives such a number back: as the claim began near
// its own clock, the time up to there is others', and the time from there to its mark is
// kept in the value as spent.
//
// Values are compared and not revisions, as a store restored from a snapshot repeats
// those.
//
// # A restart
//
// A clean stop lowers the mark to the last id, once the node has forgotten its token. After a
// crash the mark is up to hold ahead. A node that has its disk goes on at once all the same: the
// disk has the token ([Memory]), and a mark of its own that is closer, the generators'. It gets
// a new token, so of two copies of a disk only one gets the number, and none that does not
// know the last mark. But until then a copy makes the same ids: do not start one.
//
// # A store restored from a snapshot
//
// Such a store has forgotten marks. An owner that finds an earlier value where its own
// belongs writes its own again. [AfterRestore] mends the rest, if called before nodes
// reach the store: it writes the floor, a mark for all numbers.
// Every claim begins above it, every claim and extension compares it, and an owner
// whose own mark was past when the floor was written claims anew. An owner whose store is
// [Restorable] does the same when it notices; what was claimed before that is not safe.
package workers
