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

// What the format has: ids a millisecond, and a second.
const (
	perMilli = 65536
	ceiling  = perMilli * 1000
)

// ids measures the packages of ids in this process.
func ids(p plan) ([]row, error) {
	others := slices.Concat(snowflakes(p), snoIDs(p))
	for i := range others {
		others[i].Section = otherFormats
	}
	return slices.Concat(
		single(p), text(p), bulk[flake.ID](p, "", perMilli, newFlake), []row{duplicates(p.duplicates)}, others,
	), nil
}

const otherFormats = "other formats in process"

// rival is a function to measure.
type rival struct {
	name string
	f    func(b *testing.B)
}

// race measures ours and its rivals in turn, so that what else the machine does
// falls on each, and keeps the best of each.
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
		row{Section: "ids in process", What: what + ", " + our.name, Unit: "ns", Ours: ns[0]}.aim(oursAtMost(goal)),
		row{Section: "ids in process", What: what + ", " + our.name, Unit: "allocs", Ours: allocs[0]}.aim(oursAtMost(0)),
	}
	for i, r := range all[1:] {
		row := compare("ids in process", "  beside "+r.name, "ns", r.name, ns[i+1:i+2], ns[:1])
		rows = append(rows, row.aim(less))
	}
	return rows
}

// each turns a function into a benchmark of it. What it returns is kept, so that
// it is made.
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

// filler is a generator that fills slices.
type filler[ID any] interface {
	NextN(ctx context.Context, dst []ID) (int, error)
}

// bulk measures how much of a format's ceiling is reached.
func bulk[ID any, G filler[ID]](p plan, format string, perMilli int, generator func() G) (rows []row) {
	for _, threads := range []int{1, 2} {
		for _, size := range []int{1, 16, 1024} {
			best := 0.0
			for range p.bulkRounds {
				best = max(best, rateOf(p.bulkMillis, perMilli, threads, size, filler[ID](generator())))
			}
			what := fmt.Sprintf("%s%d at a time, %d threads", format, size, threads)
			row := compare("ids in process", what, "ids/s", "the format's ceiling", []float64{float64(perMilli) * 1000}, []float64{best})
			if size >= 16 {
				row = row.aim(atLeast(0.99))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// rateOf measures ids a second over as many as some milliseconds have, from the
// beginning of one on. Those of the last are there before it ends, so that time
// counts as whole milliseconds.
func rateOf[ID any](millis, perMilli, threads, size int, g filler[ID]) float64 {
	start := time.Now()
	for start.Nanosecond()%1e6 > 1e4 {
		start = time.Now()
	}
	total := millis * perMilli
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			ids := make([]ID, size)
			for left := total / threads; left > 0; left -= size {
				if _, err := g.NextN(context.Background(), ids[:min(left, size)]); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	return float64(total) / (took + time.Millisecond - 1).Truncate(time.Millisecond).Seconds()
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

// duplicates makes ids from goroutines at once, and sorts them to find those that
// are there twice.
func duplicates(n int) row {
	g := newFlake()
	mine := twins(n, func() (key [16]byte) {
		id, err := g.Next(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		return id
	})
	return row{
		Section: "ids in process", What: fmt.Sprintf("there twice, of %s, %d goroutines", short(float64(n)), goroutines),
		Unit: "ids", Ours: float64(mine),
	}.aim(oursAtMost(0))
}

// twins returns how many of n keys are there already. It makes them in parts, so
// that they fit in memory; a part that begins again is seen by its ends.
func twins[K [10]byte | [16]byte](n int, next func() K) int {
	const part = 16_000_000
	twice := 0
	var last K
	for done := 0; done < n; done += part {
		keys := make([]K, min(part, n-done))
		var wg sync.WaitGroup
		for chunk := range slices.Chunk(keys, (len(keys)+goroutines-1)/goroutines) {
			wg.Go(func() {
				for i := range chunk {
					chunk[i] = next()
				}
			})
		}
		wg.Wait()
		slices.SortFunc(keys, func(a, b K) int { return bytes.Compare(raw(&a), raw(&b)) })
		for i := range keys {
			if i > 0 && keys[i] == keys[i-1] {
				twice++
			}
		}
		if done > 0 && bytes.Compare(raw(&keys[0]), raw(&last)) <= 0 {
			twice++
		}
		last = keys[len(keys)-1]
	}
	return twice
}

func raw[K [10]byte | [16]byte](k *K) []byte {
	switch k := any(k).(type) {
	case *[10]byte:
		return k[:]
	case *[16]byte:
		return k[:]
	}
	return nil
}
