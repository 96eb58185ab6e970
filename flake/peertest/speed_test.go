package peertest

import (
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	google "github.com/google/uuid"
	muyo "github.com/muyo/sno"
	oklog "github.com/oklog/ulid/v2"
	"github.com/rs/xid"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// Results are assigned to these variables, so that the compiler does not omit the calls. They are
// not fields of a struct, which might straddle cache lines.
var (
	sinkText      string
	sinkBytes     []byte
	sinkErr       error
	sinkFlake     flake.ID
	sinkSnowflake snowflake.ID
	sinkBwmarrin  bwmarrin.ID
	sinkSno       sno.ID
	sinkMuyo      muyo.ID
	sinkUuid      uuidv7.ID
	sinkGoogle    google.UUID
	sinkUlid      ulid.ID
	sinkOklog     oklog.ULID
	sinkXid       xid.ID
)

// BenchmarkPairs compares the CPU time of a call with that of the same call in another
// library. The two alternate; run it with -benchtime 60x, for 60 rounds. It reports the minimum
// of each, and the ratios of their minima and medians.
func BenchmarkPairs(b *testing.B) {
	const number = 0x0203_0800_cd46_1001
	var (
		someSno  = muyo.New(1)
		someUUID = google.Must(google.NewV7())
		someULID = oklog.Make()
		text58   = bwmarrin.ID(number).Base58()
		bytes58  = []byte(text58)
		textSno  = someSno.String()
		textUUID = someUUID.String()
		textULID = someULID.String()
		buf      = make([]byte, len(textULID))
	)
	together := func(goroutines int, calls func(n int)) func(int) {
		return func(n int) {
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() { calls(n / goroutines) })
			}
			wg.Wait()
		}
	}
	generator, err := flake.NewGenerator(1, flake.Options{})
	if err != nil {
		b.Fatal(err)
	}
	rows := []struct {
		name         string
		ours, theirs func(n int)
	}{
		{"snowflake.Base58.Text/bwmarrin", func(n int) {
			for range n {
				sinkText = snowflake.Base58.Text(number)
			}
		}, func(n int) {
			for range n {
				sinkText = bwmarrin.ID(number).Base58()
			}
		}},
		{"snowflake.Base58.Parse/bwmarrin", func(n int) {
			for range n {
				sinkSnowflake, _ = snowflake.Base58.Parse(text58)
			}
		}, func(n int) {
			for range n {
				sinkBwmarrin, _ = bwmarrin.ParseBase58(bytes58)
			}
		}},
		{"sno.Parse/muyo", func(n int) {
			for range n {
				sinkSno, _ = sno.Parse(textSno)
			}
		}, func(n int) {
			for range n {
				sinkMuyo, _ = muyo.FromEncodedString(textSno)
			}
		}},
		{"uuidv7.String/google", func(n int) {
			for range n {
				sinkText = uuidv7.ID(someUUID).String()
			}
		}, func(n int) {
			for range n {
				sinkText = someUUID.String()
			}
		}},
		{"ulid.String/oklog", func(n int) {
			for range n {
				sinkText = ulid.ID(someULID).String()
			}
		}, func(n int) {
			for range n {
				sinkText = someULID.String()
			}
		}},
		{"ulid.AppendText/oklog", func(n int) {
			for range n {
				sinkBytes, _ = ulid.ID(someULID).AppendText(buf[:0])
			}
		}, func(n int) {
			for range n {
				sinkErr = someULID.MarshalTextTo(buf)
			}
		}},
		{"uuidv7.Parse/google", func(n int) {
			for range n {
				sinkUuid, _ = uuidv7.Parse(textUUID)
			}
		}, func(n int) {
			for range n {
				sinkGoogle, _ = google.Parse(textUUID)
			}
		}},
		{"Parse/google", func(n int) {
			for range n {
				sinkFlake, _ = flake.Parse(textUUID)
			}
		}, func(n int) {
			for range n {
				sinkGoogle, _ = google.Parse(textUUID)
			}
		}},
		{"ulid.Parse/oklog,strict", func(n int) {
			for range n {
				sinkUlid, _ = ulid.Parse(textULID)
			}
		}, func(n int) {
			for range n {
				sinkOklog, _ = oklog.ParseStrict(textULID)
			}
		}},
		{"ulid.Parse/oklog", func(n int) {
			for range n {
				sinkUlid, _ = ulid.Parse(textULID)
			}
		}, func(n int) {
			for range n {
				sinkOklog, _ = oklog.Parse(textULID)
			}
		}},
		{"Generator.Next/google", func(n int) {
			for range n {
				sinkFlake, _ = generator.Next(b.Context())
			}
		}, func(n int) {
			for range n {
				sinkGoogle, _ = google.NewV7()
			}
		}},
		{"Generator.Next/oklog", func(n int) {
			for range n {
				sinkFlake, _ = generator.Next(b.Context())
			}
		}, func(n int) {
			for range n {
				sinkOklog = oklog.Make()
			}
		}},
		{"New/xid", func(n int) {
			for range n {
				sinkFlake = flake.New()
			}
		}, func(n int) {
			for range n {
				sinkXid = xid.New()
			}
		}},
		{"New/xid/goroutines=2", together(2, func(n int) {
			var id flake.ID
			for range n {
				id = flake.New()
			}
			runtime.KeepAlive(id)
		}), together(2, func(n int) {
			var id xid.ID
			for range n {
				id = xid.New()
			}
			runtime.KeepAlive(id)
		})},
	}
	for _, row := range rows {
		b.Run(row.name, func(b *testing.B) {
			n := 1000
			for cpu(row.theirs, n) < 2*time.Millisecond {
				n *= 2
			}
			var ours, theirs []float64
			for range b.N {
				ours = append(ours, float64(cpu(row.ours, n))/float64(n))
				theirs = append(theirs, float64(cpu(row.theirs, n))/float64(n))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			if ours[0] < leastCost || theirs[0] < leastCost {
				b.Fatalf("%.2f ns and %.2f ns a call: less than any call can take", ours[0], theirs[0])
			}
			b.ReportMetric(0, "ns/op") // hidden: it would be the time of a round
			b.ReportMetric(ours[0], "ns-ours")
			b.ReportMetric(theirs[0], "ns-theirs")
			b.ReportMetric(ours[0]/theirs[0], "of-minima")
			b.ReportMetric(ours[b.N/2]/theirs[b.N/2], "of-medians")
		})
	}
}

// BenchmarkTwins counts the ids that eight goroutines get twice from one generator of muyo/sno. Run
// it with -benchtime 16000000x.
func BenchmarkTwins(b *testing.B) {
	g, err := muyo.NewGenerator(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]muyo.ID, b.N)
	var wg sync.WaitGroup
	for part := range slices.Chunk(ids, (b.N+7)/8) {
		wg.Go(func() {
			for i := range part {
				part[i] = g.New(0)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(ids, func(a, b muyo.ID) int { return a.Compare(b) })
	b.ReportMetric(float64(b.N-len(slices.Compact(ids))), "duplicates")
}

// leastCost is less than any of these calls takes, in ns: a load from memory takes as long.
const leastCost = 2

// cpu returns the CPU time that the process uses for n calls. It stays on one thread, because the time
// of the process lags behind for all other threads that run, and so could be too short.
func cpu(calls func(n int), n int) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := used()
	calls(n)
	return used() - begin
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
