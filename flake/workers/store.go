package workers

import (
	"context"
	"errors"
	"time"
)

// Store keeps the marks. All nodes of a fleet share one store. Another store needs only to keep the
// promises below; package workers/storetest checks them.
//
//   - A Swap is atomic: no call ever sees some of its writes without the others, or a comparison
//     that another write has made untrue.
//   - Calls are linearizable: each sees all writes that were reported before it began. So a read
//     never comes from a cache or a replica that may lag, or from a server that may have been
//     replaced without knowing it.
//   - A write is durable before Swap returns true: it survives if all machines of the store lose
//     power. If the store can be restored to an earlier state, see [Restorable].
//   - If Swap returns false and no error, its writes did not happen and never will. So Swap never
//     repeats a request that may have been executed: the second would find the first's values.
//   - If Swap returns an error, its writes may have happened, may still happen, or not. A write
//     that happens late compares the values that the store has by then.
//   - An error wraps [ErrRefused] only if an operator must act, for example because a password is
//     wrong. While the store is down, busy or full, or has too many clients, it does not.
//   - A call returns soon after ctx is done. Then nothing is left of it in this process.
//   - Calls may be concurrent, in one process and in many.
//   - Errors name the server, the cause and, if an operator must act, what to do. Text from servers
//     is safe to print, and its size is limited.
//
// Keys and values are valid UTF-8 without control characters, and are compared byte by byte. Keys
// end with "/floor", "/n/" or "/used/" and 12 hexadecimal digits; the rest is the prefix, which
// users choose. Values are up to 1 KiB, and that of a floor up to 16 times the size of its prefix
// and 80 bytes. A Swap compares and writes at most three keys. Its values are not empty; keys are
// never deleted. A fleet has up to 65,536 numbers, each with two keys.
type Store interface {
	// List returns all keys that begin with prefix, which ends with a slash, and their values, as
	// of a single moment during the call.
	List(ctx context.Context, prefix string) (map[string]string, error)

	// Get returns the values of keys, as of a single moment during the call. The value of a
	// missing key is "".
	Get(ctx context.Context, keys ...string) ([]string, error)

	// Swap writes all values in write, by key, if every key in have has the value given there
	// ("" for a missing key), and reports whether it did. It writes all values at the same
	// moment. After an error they may have been written, or may still be written later.
	Swap(ctx context.Context, have, write map[string]string) (bool, error)
}

// ErrRefused means that the store refuses requests and retrying does not help. A [Store]
// returns errors that wrap it.
var ErrRefused = errors.New("the store refuses")

// Clustered is a [Store] that knows the id of its cluster. A node that had its number in another
// cluster claims none, because its fleet may still use the numbers there.
type Clustered interface {
	// Cluster returns the id of the cluster. No other store has it. It should change when the store
	// may have lost writes: a node that starts then writes the floor before it claims a number.
	Cluster(ctx context.Context) (string, error)
}

// Restorable is a [Store] that notices when it was restored to an earlier state, for example from a
// backup or by a failover to a replica that lagged. An owner then writes the floor. What leaves no
// evidence is for the store's documentation to say.
type Restorable interface {
	// Restored returns the evidence of a restore, once. After the store has noticed the restore,
	// all other calls fail until Restored has returned the evidence, including calls that were in
	// progress. An answer is evidence only in comparison with answers that arrived before its
	// request was sent. A restart that loses no write must leave no evidence: each sign costs the
	// nodes that claim next up to hold without ids.
	Restored() (sign string, ok bool)
}

// Dated is a [Store] that knows the time on its machines. It keeps a node with a wrong clock from
// using up numbers. Uniqueness does not depend on it.
type Dated interface {
	// Clocks compares now, in milliseconds since 1970-01-01 UTC, with the clock of each machine
	// that answers. For each of them it returns the least by which now can be ahead; negative
	// means behind. If none answers before ctx is done, it returns nothing.
	Clocks(ctx context.Context, now func() uint64) []time.Duration
}
