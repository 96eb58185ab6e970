package workers

import (
	"context"
	"fmt"
	"math"

	"github.com/flake-go/flake/flake/internal/mark"
)

// Memory stores a node's claim on its disk. A *flake.Marks implements it.
type Memory interface {
	// Number returns the claim last stored by Remember, or nil.
	Number() *Kept
	// Remember stores a claim durably; nil erases it.
	Remember(*Kept) error
	// Latest returns an upper bound on the times of the node's ids. Call it only after all of
	// the node's generators are closed.
	Latest() uint64
}

// Kept is a claim as stored in a [Memory].
type Kept = mark.Number

// noMemory is the [Memory] of a node without a disk.
type noMemory struct{}

func (noMemory) Number() *Kept        { return nil }
func (noMemory) Remember(*Kept) error { return nil }
func (noMemory) Latest() uint64       { return math.MaxUint64 }

// remember stores a claim on the node's disk, with the highest mark that may be written for it.
// If that fails, the node will claim a different number after a crash.
func (o *Owner) remember(c *Claim, highest uint64) {
	err := o.Memory.Remember(&Kept{
		Cluster: o.cluster, Prefix: o.Prefix, Number: c.Number(), Generation: c.entry.Generation, Token: c.entry.Token,
		After: c.after, Floor: c.floor.Nonce, Mark: highest,
	})
	if err != nil {
		o.Log.Warn("the worker id cannot be stored in the file: after a crash the node claims a different one",
			"err", err)
	}
}

// resumes reports whether this node had the number before it restarted and no other node has
// had it since. A number whose mark has passed is claimed like any other. If the mark is higher
// than the highest that this disk knows, another process has moved it: the disk is a copy.
func (o *Owner) resumes(t table, e Entry) bool {
	if e.Mark < o.Clock() {
		return false
	}
	if c, _ := o.Claim(); c != nil { // c is lost: otherwise the owner would not claim
		return false
	}
	k := o.Memory.Number()
	return k != nil && k.Cluster == o.cluster && k.Prefix == o.Prefix && k.Number == e.Number &&
		k.Generation == e.Generation && k.Token == e.Token && k.Floor == t.floor.Nonce && e.Mark <= k.Mark
}

// An ElsewhereError is the error of a claim while the node may still have a number from another
// cluster or prefix.
type ElsewhereError struct {
	Until uint64 // the mark of that number
	error
}

// elsewhere returns an [ElsewhereError] while this node may still have a number from another
// cluster or prefix that the other nodes of its fleet may be using.
func (o *Owner) elsewhere(ctx context.Context) (err error) {
	if s, ok := o.Store.(Clustered); ok {
		ctx, cancel := o.asking(ctx)
		defer cancel()
		if o.cluster, err = s.Cluster(ctx); err != nil {
			return err
		}
	}
	k := o.Memory.Number()
	if k == nil || k.Mark < o.Clock() ||
		k.Prefix == o.Prefix && (k.Cluster == o.cluster || k.Cluster == "" || o.cluster == "") {
		return nil
	}
	err = fmt.Errorf("flake: this node has worker id %d of prefix %q in cluster %s until %s, "+
		"but was started for prefix %q in cluster %s: restore the former setting, or wait; "+
		"move all nodes of a fleet together",
		k.Number, k.Prefix, k.Cluster, show(k.Mark), o.Prefix, o.cluster)
	return ElsewhereError{k.Mark, err}
}
