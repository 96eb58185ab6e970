package workers

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/flake-go/flake/flake/internal/mark"
)

// Memory stores a node's claim on its disk. A *flake.Marks implements it.
type Memory interface {
	// Number returns the claim last stored by Remember, or nil.
	Number() *Kept
	// Remember stores a claim durably.
	Remember(*Kept) error
	// Latest returns an upper bound on the times of the node's ids. Call it only after all of
	// the node's generators are closed.
	Latest() uint64
}

// Kept is a claim as stored in a [Memory]. Once the number is lost or returned, only Cluster and Prefix
// are left.
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

// forget erases the claim from the node's disk, but not its place.
func (o *Owner) forget() error {
	return o.Memory.Remember(&Kept{Cluster: o.cluster, Prefix: o.Prefix})
}

// locate asks for the id of the store's cluster.
func (o *Owner) locate(ctx context.Context) (err error) {
	ctx, cancel := o.asking(ctx)
	defer cancel()
	o.cluster, err = clusterOf(ctx, o.Store)
	return err
}

// clusterOf returns the id of a store's cluster, or "" if the store has none.
func clusterOf(ctx context.Context, s Store) (string, error) {
	if s, ok := s.(Clustered); ok {
		return s.Cluster(ctx)
	}
	return "", nil
}

func (o *Owner) place() string { return Place(o.cluster, o.Prefix) }

// An ElsewhereError is the error of a claim if the node had its last number in another cluster or
// under another prefix, and the store does not say that its numbers were moved from there.
type ElsewhereError struct{ error }

func (e ElsewhereError) Unwrap() error { return e.error }

// elsewhere returns an [ElsewhereError] if the other nodes of this node's fleet may be using other
// numbers than those of the store.
func (o *Owner) elsewhere(t table) error {
	k := o.Memory.Number()
	if k == nil || k.Prefix == o.Prefix && (k.Cluster == o.cluster || k.Cluster == "" || o.cluster == "") {
		return nil
	}
	from := Place(k.Cluster, k.Prefix)
	if t.floor.in(from) {
		return nil
	}
	return ElsewhereError{fmt.Errorf("%w: this node's last number is from cluster %s, prefix %q, "+
		"but it was started for cluster %s, prefix %q, whose numbers are not known to continue those: "+
		"restore the former setting; or, to move the whole fleet, stop all nodes, "+
		"run flake workers move %q with the new setting, and start them",
		ErrRefused, cmp.Or(k.Cluster, "unknown"), k.Prefix, cmp.Or(o.cluster, "unknown"), o.Prefix, from)}
}
