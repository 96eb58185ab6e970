package client

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// compare has the worker of an id compared with those of the other doors' ids, once
// for each two. It is called with f.mu held, when ids come from another door than before.
func (f *Failover) compare(generator string, at int, id number) {
	seen := f.seen[generator]
	if seen == nil {
		seen = make(map[int]number)
		f.seen[generator] = seen
	}
	for door, other := range seen {
		pair := [2]int{min(door, at), max(door, at)}
		if door != at && !f.same[pair] && f.ctx.Err() == nil {
			f.comparing.Go(func() { f.compareTwo(generator, pair, at, id, other) })
		}
	}
	seen[at] = id
}

func (f *Failover) compareTwo(generator string, pair [2]int, at int, a, b number) {
	ctx, cancel := context.WithTimeout(f.ctx, failoverTime)
	defer cancel()
	one, err := f.worker(ctx, generator, at, a)
	if err != nil {
		return // it is compared when ids come from the door again
	}
	two, err := f.worker(ctx, generator, at, b)
	if err != nil || !slices.Equal(one, two) {
		return
	}
	f.mu.Lock()
	known := f.same[pair]
	f.same[pair] = true
	f.mu.Unlock()
	if known {
		return
	}
	err = fmt.Errorf("nodes %d and %d of %d hand out ids of generator %s with the same %s: unless they are one node, or it has moved from one to the other by etcd, ids may come twice; give one of them another",
		pair[0]+1, pair[1]+1, len(f.doors), generator, describe(one))
	if f.SameWorker != nil {
		f.SameWorker(err)
		return
	}
	slog.Error("two nodes have one worker", "err", err)
}

// worker returns the fields that say who made an id, as a door knows its format.
func (f *Failover) worker(ctx context.Context, generator string, at int, id number) (who []Field, err error) {
	fields, err := f.doors[at].decompose(ctx, generator, bytesOf(id, sizeOfNumber(id)))
	for _, field := range fields {
		switch field.Name {
		case "worker", "machine", "datacenter", "partition":
			who = append(who, field)
		}
	}
	if err == nil && len(who) == 0 {
		err = fmt.Errorf("%w: an id without a worker", ErrUnknown)
	}
	return who, err
}

// sizeOfNumber tells the size of an id, of which texts say nothing: ids of 16 bytes begin
// with 64 or 48 bits of milliseconds since 1970, sno's with 39 of 4 ms.
func sizeOfNumber(id number) int {
	switch {
	case id.hi == 0:
		return snowflakeSize
	case id.hi < 1<<16:
		return snoSize
	}
	return flakeSize
}

func describe(who []Field) string {
	text := ""
	for _, field := range who {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %d", field.Name, field.Value)
	}
	return text
}
