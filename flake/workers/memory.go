package workers

import (
	"context"
	"fmt"

	"github.com/flake-go/flake/flake/internal/mark"
)

// Memory is what a node has on its disk. A *flake.Marks is one.
type Memory interface {
	// Number returns what was remembered last; nil: nothing, or it was forgotten.
	Number() *Kept
	// Remember has a number be there after a crash too, once it returns; nil forgets it.
	Remember(*Kept) error
	// Latest is a time that no id of the node is later than, when all its generators
	// have ended.
	Latest() uint64
}

// Kept is a claim as a [Memory] keeps it.
type Kept = mark.Number

// remember keeps a claim on the node's disk, with the highest mark that may be written for
// it. If that fails, the node claims another number after a crash.
func (o *Owner) remember(c *Claim, highest uint64) {
	if o.Memory == nil {
		return
	}
	err := o.Memory.Remember(&Kept{
		Cluster: o.cluster, Prefix: o.Prefix, Number: c.Number(), Generation: c.entry.Generation, Token: c.entry.Token,
		After: c.after, Floor: c.floor.Nonce, Mark: highest,
	})
	if err != nil {
		o.Log.Warn("the worker id cannot be kept: a start after a crash claims another", "err", err)
	}
}

// forget has the disk know of no number any more.
func (o *Owner) forget() error {
	if o.Memory == nil {
		return nil
	}
	return o.Memory.Remember(nil)
}

// resumes reports whether this node had the number before its restart, and nobody else
// since. A number whose mark is past is claimed as any other. One whose mark is higher than
// any that this disk knows of was moved on by somebody else: the disk is a copy.
func (o *Owner) resumes(t table, e Entry) bool {
	if o.Memory == nil || e.Mark < o.Clock() {
		return false
	}
	if c, _ := o.Claim(); c != nil { // which is lost
		return false
	}
	k := o.Memory.Number()
	return k != nil && k.Cluster == o.cluster && k.Prefix == o.Prefix && k.Number == e.Number &&
		k.Generation == e.Generation && k.Token == e.Token && k.Floor == t.floor.Nonce && e.Mark <= k.Mark
}

// An ElsewhereError is returned while a node may have a number of another cluster or prefix.
type ElsewhereError struct {
	Until uint64 // the mark of that number
	error
}

// elsewhere returns an [ElsewhereError] while this node may have a number of another cluster or
// prefix: other nodes may go by that one.
func (o *Owner) elsewhere(ctx context.Context) (err error) {
	if s, ok := o.Store.(Clustered); ok {
		ctx, cancel := o.asking(ctx)
		defer cancel()
		if o.cluster, err = s.Cluster(ctx); err != nil {
			return err
		}
	}
	if o.Memory == nil {
		return nil
	}
	k := o.Memory.Number()
	if k == nil || k.Mark < o.Clock() || k.Prefix == o.Prefix && (k.Cluster == o.cluster || k.Cluster == "" || o.cluster == "") {
		return nil
	}
	err = fmt.Errorf("flake: this node has worker id %d of prefix %q in cluster %s until %s, and was started for prefix %q in cluster %s: "+
		"set the former again, or wait; a fleet moves as a whole", k.Number, k.Prefix, k.Cluster, show(k.Mark), o.Prefix, o.cluster)
	return ElsewhereError{k.Mark, err}
}
