package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"math/big"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/muyo/sno"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"

	"github.com/flake-go/flake/flake"
)

const (
	perMilli = 65536 // ids of the format flake in a millisecond
	ceiling  = perMilli * 1000

	inProcess    = "ids in process"
	otherFormats = "other formats in process"
)

// ids measures the packages that make ids, in this process.
func ids(_ *world, p plan) ([]row, error) {
	others := slices.Concat(snowflakes(p), snoIDs(p))
	for i := range others {
		others[i].Section = otherFormats
	}
	g := newFlake()
	next := func() [16]byte {
		id, err := g.Next(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		return id
	}
	return slices.Concat(single(p), text(p), bulk(p, "", time.Millisecond, perMilli, bulkSizes, newFlake),
		[]row{duplicates("there twice", p.duplicates, next)}, others), nil
}

// rival is a function to measure.
type rival struct {
	name string
	f    func(b *testing.B)
}

// race measures ours and its rivals in turn, so that other load on the machine affects them all,
// and keeps the best result of each.
func race(p plan, what string, goal float64, our rival, rivals ...rival) []row {
	all := append([]rival{our}, rivals...)
	ns, allocs := make([]float64, len(all)), make([]float64, len(all))
	for round := range p.idRounds {
		for i, r := range all {
			result := testing.Benchmark(r.f)
			took := float64(result.T.Nanoseconds()) / float64(result.N)
			if round == 0 || took < ns[i] {
				ns[i] = took
			}
			allocs[i] = float64(result.AllocsPerOp())
		}
	}
	rows := []row{
		row{Section: inProcess, What: what + ", " + our.name, Unit: "ns", Ours: ns[0]}.aim(oursAtMost(goal)),
		row{Section: inProcess, What: what + ", " + our.name, Unit: "allocs", Ours: allocs[0]}.aim(oursAtMost(0)),
	}
	for i, r := range all[1:] {
		rows = append(rows, compare(inProcess, "  beside "+r.name, "ns", r.name, ns[i+1:i+2], ns[:1]))
	}
	return rows
}

// each returns a benchmark of a function whose results the compiler cannot optimize away.
func each[T any](f func() T) func(*testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		var last T
		for range b.N {
			last = f()
		}
		runtime.KeepAlive(last)
	}
}

func newFlake() *flake.Generator {
	g, err := flake.NewGenerator(0x020000000001, flake.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return g
}

var bulkSizes = []int{1, 16, 1024}

// bulk measures how close generators that fill slices come to a format's ceiling.
func bulk[ID any, G interface {
	NextN(ctx context.Context, dst []ID) (int, error)
}](p plan, format string, tick time.Duration, perTick int, sizes []int, generator func() G) (rows []row) {
	ticks := p.bulkTime / tick
	ceiling := []float64{float64(perTick) / tick.Seconds()}
	for _, threads := range []int{1, 2} {
		for _, size := range sizes {
			best := 0.0
			for range p.bulkRounds {
				g := generator()
				best = max(best, rateOf(tick, int(ticks)*perTick, threads, size, func(dst []ID) {
					if _, err := g.NextN(context.Background(), dst); err != nil {
						log.Fatal(err)
					}
				}))
			}
			what := fmt.Sprintf("%s%d at a time, %d threads", format, size, threads)
			row := compare(inProcess, what, "ids/s", "the format's ceiling", ceiling, []float64{best})
			if size >= 16 {
				row = row.aim(atLeast(0.99))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// rateOf measures ids per second from the start of a tick. The ids of the last tick are made
// before it ends, so the time is rounded up to whole ticks.
func rateOf[ID any](tick time.Duration, total, threads, size int, fill func(dst []ID)) float64 {
	start := awaitTick(tick)
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			ids := make([]ID, size)
			for left := total / threads; left > 0; left -= size {
				fill(ids[:min(left, size)])
			}
		})
	}
	wg.Wait()
	return float64(total) / (time.Since(start) + tick - 1).Truncate(tick).Seconds()
}

// awaitTick waits for the start of a tick and returns it.
func awaitTick(tick time.Duration) time.Time {
	now := time.Now()
	for now.UnixNano()%int64(tick) > 1e4 {
		now = time.Now()
	}
	return now
}

func single(p plan) []row {
	g := newFlake()
	s, err := sno.NewGenerator(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	node, err := snowflake.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	return race(p, "one id, one thread", 45,
		rival{"Next", each(func() flake.ID { id, _ := g.Next(context.Background()); return id })},
		rival{"rs/xid", each(xid.New)},
		rival{"muyo/sno (at its ceiling)", each(func() sno.ID { return s.New(0) })},
		rival{"google/uuid v7", each(func() uuid.UUID { id, _ := uuid.NewV7(); return id })},
		rival{"oklog/ulid", each(ulid.Make)},
		rival{"bwmarrin (at its ceiling)", each(node.Generate)},
	)
}

func text(p plan) []row {
	id, err := newFlake().Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	short, _ := id.Text(62)
	full := id.String()
	number := new(big.Int).SetBytes(id[:])
	digits, buf := number.Text(62), make([]byte, 0, 32)
	return slices.Concat(
		race(p, "base 62", 16,
			rival{"AppendBase", each(func() []byte { b, _ := id.AppendBase(buf, 62); return b })},
			rival{"flake AppendText", each(func() []byte { b, _ := id.AppendText(buf); return b })},
			rival{"flake String", each(id.String)},
			rival{"math/big Append", each(func() []byte { return new(big.Int).SetBytes(id[:]).Append(buf, 62) })},
		),
		race(p, "base 62", 25,
			rival{"ParseBase", each(func() flake.ID { id, _ := flake.ParseBase(short, 62); return id })},
			rival{"flake ParseBase, padded", each(func() flake.ID { id, _ := flake.ParseBase(full, 62); return id })},
			rival{"math/big SetString", each(func() *big.Int { n, _ := new(big.Int).SetString(digits, 62); return n })},
		),
	)
}

const goroutines = 8

// duplicates returns a row that says how many of n keys are duplicates.
func duplicates(what string, n int, next func() [16]byte) row {
	return row{
		Section: inProcess, What: fmt.Sprintf("%s, of %s, %d goroutines", what, short(float64(n)), goroutines),
		Unit: "ids", Ours: float64(twins(n, next)),
	}.aim(oursAtMost(0))
}

// twins returns how many of n keys repeat another key. It makes the keys from several goroutines, and
// in parts that fit in memory. Keys ascend, so the ends of two parts show whether they overlap.
func twins(n int, next func() [16]byte) (twice int) {
	const part = 16_000_000
	compare := func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }
	var last [16]byte
	for done := 0; done < n; done += part {
		keys := make([][16]byte, min(part, n-done))
		var wg sync.WaitGroup
		for chunk := range slices.Chunk(keys, (len(keys)+goroutines-1)/goroutines) {
			wg.Go(func() {
				for i := range chunk {
					chunk[i] = next()
				}
			})
		}
		wg.Wait()
		slices.SortFunc(keys, compare)
		for i := range keys {
			if i > 0 && keys[i] == keys[i-1] {
				twice++
			}
		}
		if done > 0 && compare(keys[0], last) <= 0 {
			twice++
		}
		last = keys[len(keys)-1]
	}
	return twice
}
