package main

import (
	"context"
	"fmt"
	"log"
	"slices"
	"sync"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	peer "github.com/muyo/sno"

	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
)

// snowflakes measures package snowflake. One at a time is measured with 16 bits
// of sequence, as 12 are used up before any generator gets slow. Theirs reads text
// without looking whether it is too long.
func snowflakes(p plan) []row {
	node := newBwmarrin(16)
	g := newSnowflake(16)
	id, err := g.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	same, buf := bwmarrin.ID(id), make([]byte, 0, 16)
	text := snowflake.Base58.Text(id)
	data := []byte(text)
	return slices.Concat(
		race(p, "snowflake", 45,
			rival{"Next", each(func() snowflake.ID { id, _ := g.Next(context.Background()); return id })},
			rival{"bwmarrin Generate", each(node.Generate)},
		),
		race(p, "snowflake", 40,
			rival{"Base58", each(func() []byte { return snowflake.Base58.Append(buf, id) })},
			rival{"bwmarrin Base58", each(same.Base58)},
		),
		race(p, "snowflake", 16,
			rival{"Base58.Parse", each(func() snowflake.ID { id, _ := snowflake.Base58.Parse(text); return id })},
			rival{"bwmarrin ParseBase58", each(func() bwmarrin.ID { id, _ := bwmarrin.ParseBase58(data); return id })},
		),
		bulk[snowflake.ID](p, "snowflake, ", 4096, func() *snowflake.Generator { return newSnowflake(12) }),
	)
}

func newSnowflake(sequence uint8) *snowflake.Generator {
	l := snowflake.Twitter
	l.Worker, l.Sequence = 22-sequence, sequence
	g, err := l.NewGenerator(1, snowflake.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return g
}

func newBwmarrin(sequence uint8) *bwmarrin.Node {
	defer func(node, step uint8) { bwmarrin.NodeBits, bwmarrin.StepBits = node, step }(bwmarrin.NodeBits, bwmarrin.StepBits)
	bwmarrin.NodeBits, bwmarrin.StepBits = 22-sequence, sequence
	node, err := bwmarrin.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	return node
}

// snoCeiling is what the format has: 65,536 ids in 4 ms.
const snoCeiling = 65536 * 250

func newSno() *sno.Generator {
	g, err := sno.NewGenerator(nil, sno.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return g
}

func newPeer() *peer.Generator {
	g, err := peer.NewGenerator(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	return g
}

// snoIDs measures package sno beside muyo/sno.
func snoIDs(p plan) (rows []row) {
	g, s := newSno(), newPeer()
	id, _ := g.Next(context.Background())
	theirs, text, buf := peer.ID(id), id.String(), make([]byte, 0, 16)
	rows = slices.Concat(
		race(p, "sno, below the ceiling", 61,
			rival{"Next", spare(func() sno.ID { id, _ := g.Next(context.Background()); return id })},
			rival{"muyo/sno", spare(func() peer.ID { return s.New(1) })},
		),
		race(p, "sno", 16,
			rival{"AppendText", each(func() []byte { b, _ := id.AppendText(buf); return b })},
			rival{"muyo/sno MarshalText", each(func() []byte { b, _ := theirs.MarshalText(); return b })},
		),
		race(p, "sno", 25,
			rival{"Parse", each(func() sno.ID { id, _ := sno.Parse(text); return id })},
			rival{"muyo/sno, unchecked", each(func() peer.ID { id, _ := peer.FromEncodedString(text); return id })},
		),
	)
	for _, threads := range []int{1, 2} {
		best := 0.0
		for range p.bulkRounds {
			best = max(best, snoRate(threads))
		}
		what := fmt.Sprintf("sno, 1024 at a time, %d threads", threads)
		rows = append(rows, compare("ids in process", what, "ids/s", "the format's ceiling", []float64{snoCeiling}, []float64{best}).aim(atLeast(0.99)))
	}
	return append(rows, snoDuplicates(p.duplicates))
}

// snoRate measures ids a second over as many as some ticks have, from the
// beginning of one on. Those of the last are there before it ends, so that time
// counts as whole ticks.
func snoRate(threads int) float64 {
	const ticks, size = 8, 1024
	g := newSno()
	start := awaitTick()
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			ids := make([]sno.ID, size)
			for range ticks * g.PerTick() / size / threads {
				if _, err := g.NextN(context.Background(), ids); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	wg.Wait()
	took := (time.Since(start) + sno.Unit - 1).Truncate(sno.Unit)
	return float64(ticks*g.PerTick()) / took.Seconds()
}

// awaitTick waits until a tick begins, and returns when it did.
func awaitTick() time.Time {
	now := time.Now()
	for now.UnixNano()%int64(sno.Unit) > 1e4 {
		now = time.Now()
	}
	return now
}

// snoDuplicates makes as many ids of both as fit, and counts those that are there
// twice.
func snoDuplicates(n int) row {
	n = min(n, 16_000_000)
	ours, theirs := newSno(), newPeer()
	return row{
		Section: "ids in process", What: fmt.Sprintf("sno, there twice, of %s", short(float64(n))), Unit: "ids", Than: "muyo/sno",
		Ours: float64(twins(n, func() (key [10]byte) {
			id, err := ours.Next(context.Background())
			if err != nil {
				log.Fatal(err)
			}
			return id
		})),
		Theirs: float64(twins(n, func() (key [10]byte) { return theirs.New(0) })),
	}.aim(oursAtMost(0))
}

// spare is each for a function that makes ids of 4 ms: it makes no more of a tick
// than there are, and does not measure the wait for the next.
func spare[T any](f func() T) func(*testing.B) {
	const few = 30_000
	return func(b *testing.B) {
		b.ReportAllocs()
		var last T
		for left := b.N; left > 0; left -= few {
			b.StopTimer()
			awaitTick()
			b.StartTimer()
			for range min(left, few) {
				last = f()
			}
		}
		_ = last
	}
}
