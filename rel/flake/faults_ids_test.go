package main

import (
	"bufio"
	"container/heap"
	"encoding"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake/formats"
)

var faultsTime = flag.Duration("faults.time", 15*time.Second, "how long TestFaults keeps causing faults")

// book keeps on disk every id that callers received. A caller's file has one record for each run
// of ids. Records ascend in each part of the file, so merging the parts finds every repeated id in
// little memory.
type book struct {
	t      *testing.T
	folder string

	mu    sync.Mutex
	pages []*page
}

// page is what one caller received from one generator of a node.
type page struct {
	space string // generators of one space may not share an id
	node  int
	kept  *os.File
	out   *bufio.Writer
	size  int64
	parts []int64 // where they begin

	life int
	last formats.Number // the last id
	next formats.Number // the ordinal after it

	ids  uint64
	at   time.Time  // of the last answer
	gaps [][2]int64 // periods without an answer, in µs
	back []turn     // ids that are not above the caller's previous id
}

type turn struct {
	at       int64 // in µs
	last, is formats.Number
}

// arrival is a record: the ordinals of a run's ids, and when it arrived.
type arrival struct {
	ordinal formats.Number
	count   uint32
	at      int64 // in µs
	node    int
}

const arrivalSize = 8 + 8 + 4 + 8

// page returns a new page.
func (b *book) page(space, caller string, node int) *page {
	b.mu.Lock()
	defer b.mu.Unlock()
	file, err := os.Create(filepath.Join(b.folder, fmt.Sprint(len(b.pages), "-", caller, "-", space)))
	if err != nil {
		b.t.Error(err)
	}
	b.t.Cleanup(func() { file.Close() })
	p := &page{space: space, node: node, kept: file, out: bufio.NewWriter(file)}
	b.pages = append(b.pages, p)
	return p
}

// lease is a run of ids in the form of any format.
type lease struct {
	first formats.Number
	count int
}

// leased converts runs of any format.
func leased[ID client.Format](runs []client.Run[ID], err error) ([]lease, error) {
	var all []lease
	for _, r := range runs {
		octets, _ := any(r.First).(encoding.BinaryMarshaler).MarshalBinary() // never fails
		all = append(all, lease{formats.NumberOf(string(octets)), r.Count})
	}
	return all, err
}

// add records an answer. Ids must ascend within each life.
func (p *page) add(f *formats.Format, life int, at time.Time, runs []lease) error {
	if p.ids > 0 && at.Sub(p.at) > 100*time.Millisecond {
		p.gaps = append(p.gaps, [2]int64{p.at.UnixMicro(), at.UnixMicro()})
	}
	p.at = at
	for _, run := range runs {
		ordinal := f.Ordinal(run.first)
		if p.ids > 0 && life == p.life && run.first.Compare(p.last) <= 0 {
			p.back = append(p.back, turn{at.UnixMicro(), p.last, run.first})
		}
		if p.ids == 0 || ordinal.Compare(p.next) < 0 {
			p.parts = append(p.parts, p.size)
		}
		p.life, p.last, p.next = life, f.AtOrdinal(ordinal.Plus(run.count-1)), ordinal.Plus(run.count)
		p.ids += uint64(run.count)
		p.size += arrivalSize
		var b []byte
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, ordinal.Hi), ordinal.Lo)
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, uint32(run.count)), uint64(at.UnixMicro()))
		if _, err := p.out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// longest returns the longest time in a period in which a page has no answer.
func (p *page) longest(from, to time.Time) (gap time.Duration) {
	for _, g := range p.gaps {
		micro := min(g[1], to.UnixMicro()) - max(g[0], from.UnixMicro())
		gap = max(gap, time.Duration(micro)*time.Microsecond)
	}
	return gap
}

// part reads one part of a page.
type part struct {
	in   *bufio.Reader
	node int
	now  arrival
}

func (p *part) read() error {
	var b [arrivalSize]byte
	if _, err := io.ReadFull(p.in, b[:]); err != nil {
		return err
	}
	p.now = arrival{formats.Number{Hi: binary.BigEndian.Uint64(b[:]), Lo: binary.BigEndian.Uint64(b[8:])},
		binary.BigEndian.Uint32(b[16:]), int64(binary.BigEndian.Uint64(b[20:])), p.node}
	return nil
}

type parts []*part

func (h parts) Len() int           { return len(h) }
func (h parts) Less(i, j int) bool { return h[i].now.ordinal.Compare(h[j].now.ordinal) < 0 }
func (h parts) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *parts) Push(p any)        { *h = append(*h, p.(*part)) }
func (h *parts) Pop() any          { p := (*h)[len(*h)-1]; *h = (*h)[:len(*h)-1]; return p }

// judge calls twice for each overlap of two runs in a space, with the number of ids that repeat,
// and returns the number of ids.
func (b *book) judge(space string, twice func(a, b arrival, ids uint64)) (ids uint64, err error) {
	var all parts
	for _, p := range b.pages {
		if p.space != space {
			continue
		}
		ids += p.ids
		if err := p.out.Flush(); err != nil {
			return ids, err
		}
		for i, from := range p.parts {
			to := append(p.parts, p.size)[i+1]
			one := &part{in: bufio.NewReader(io.NewSectionReader(p.kept, from, to-from)), node: p.node}
			if err := one.read(); err != nil {
				return ids, err
			}
			all = append(all, one)
		}
	}
	heap.Init(&all)
	var highest arrival // of those read, the one that ends highest
	for len(all) > 0 {
		now := all[0].now
		end, reach := now.ordinal.Plus(int(now.count)), highest.ordinal.Plus(int(highest.count))
		if now.ordinal.Compare(reach) < 0 {
			least := reach
			if end.Compare(reach) < 0 {
				least = end
			}
			twice(highest, now, least.Lo-now.ordinal.Lo)
		}
		if end.Compare(reach) > 0 {
			highest = now
		}
		switch err := all[0].read(); {
		case err == nil:
			heap.Fix(&all, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&all)
		default:
			return ids, err
		}
	}
	return ids, nil
}

// twins are the repeated ids of two nodes.
type twins struct {
	ids         uint64
	first, last int64 // in µs
}

// report judges all spaces. It returns one line for each, and the repeated ids by pair of nodes. Those that excused
// allows are counted separately.
func (b *book) report(excused func(a, b arrival) bool) (text string, wrong map[[2]int]twins, err error) {
	var lines strings.Builder
	wrong = map[[2]int]twins{}
	spaces := map[string]bool{}
	for _, p := range b.pages {
		spaces[p.space] = true
	}
	for _, space := range slices.Sorted(maps.Keys(spaces)) {
		var twice, allowed uint64
		ids, err := b.judge(space, func(x, y arrival, ids uint64) {
			if excused(x, y) {
				allowed += ids
				return
			}
			twice += ids
			pair := [2]int{min(x.node, y.node), max(x.node, y.node)}
			t, known := wrong[pair]
			if !known {
				t.first = min(x.at, y.at)
			}
			wrong[pair] = twins{t.ids + ids, min(t.first, x.at, y.at), max(t.last, x.at, y.at)}
		})
		if err != nil {
			return "", nil, err
		}
		fmt.Fprintf(&lines, "%-7s %12d ids, %d twice, %d twice as a page says\n", space, ids, twice, allowed)
	}
	return lines.String(), wrong, nil
}

func TestBook(t *testing.T) {
	f := formats.KindOf("snowflake").Format(nil)
	b := &book{t: t, folder: t.TempDir()}
	add := func(p *page, life int, at int64, first uint64, count int) {
		if err := p.add(f, life, time.UnixMicro(at), []lease{{formats.Number{Lo: first}, count}}); err != nil {
			t.Fatal(err)
		}
	}
	p, q := b.page("a", "x", 0), b.page("a", "y", 1)
	add(p, 0, 1, 100, 10)
	add(p, 0, 2, 110, 10) // adjacent
	add(p, 0, 3, 119, 1)  // twice, and not above 119
	add(p, 1, 4, 50, 10)  // lower, in another life
	add(q, 0, 5, 40, 15)  // 5 twice
	add(q, 0, 6, 95, 10)  // 5 twice
	add(b.page("b", "z", 1), 0, 6, 95, 10)
	text, wrong, err := b.report(func(x, y arrival) bool { return x.at == 5 })
	if err != nil || len(p.back) != 1 || len(q.back) != 0 || len(wrong) != 2 || wrong[[2]int{0, 1}] != (twins{5, 1, 6}) ||
		wrong[[2]int{0, 0}] != (twins{1, 2, 3}) {
		t.Errorf("%v, %v, %d\n%s", err, wrong, len(p.back), text)
	}
	if want := "a                 56 ids, 6 twice, 5 twice as a page says\n"; !strings.HasPrefix(text, want) {
		t.Error(text)
	}
}
