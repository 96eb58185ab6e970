package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// format is the size of an id, and the bits of its second-to-last byte that are not part of the
// sequence. The last byte belongs to the sequence, and the bytes before these two to the time and the number.
type format struct {
	size int
	mask byte
}

var sizes = map[string]format{"flake": {16, 0}, "orders": {8, 0xF0}, "events": {10, 0}}

// given is what callers received.
type given struct {
	answers    int
	end        int64                         // when the last answer arrived, in µs
	descending int                           // ids not greater than the caller's previous id
	ids        map[string][]givenID          // by generator
	at         map[string]map[string][]int64 // when answers arrived, in µs, by node and generator
	numbers    map[uint16][]int64            // when answers of flake arrived, by number
}

type givenID struct {
	id   [16]byte // shorter formats use the first bytes
	node byte     // the digit in the node's name
}

func newGiven() *given {
	return &given{ids: map[string][]givenID{}, at: map[string]map[string][]int64{}, numbers: map[uint16][]int64{}}
}

// readGiven reads the files that the check fleet of caller.erl wrote.
func readGiven(t *testing.T, folder string) *given {
	t.Helper()
	g := newGiven()
	files, err := filepath.Glob(filepath.Join(folder, "n*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data := readFile(t, file)
		name := strings.Fields(filepath.Base(file))
		if !g.add(name[0], name[1], []byte(data)) {
			t.Fatalf("%s ends early", file)
		}
	}
	for _, byGenerator := range g.at {
		for generator, at := range byGenerator {
			byGenerator[generator] = append(at, g.end)
			slices.Sort(byGenerator[generator])
		}
	}
	for _, at := range g.numbers {
		slices.Sort(at)
	}
	return g
}

// add adds the answers of one caller, and reports whether data is complete.
func (g *given) add(node, generator string, data []byte) bool {
	const head = 8 + 2
	size := sizes[generator].size
	var last []byte
	for len(data) > 0 {
		if len(data) < head || len(data) < head+int(binary.BigEndian.Uint16(data[8:])) {
			return false
		}
		at := int64(binary.BigEndian.Uint64(data))
		ids := data[head:][:binary.BigEndian.Uint16(data[8:])]
		data = data[head+len(ids):]
		g.answers++
		g.end = max(g.end, at)
		if g.at[node] == nil {
			g.at[node] = map[string][]int64{}
		}
		g.at[node][generator] = append(g.at[node][generator], at)
		if generator == "flake" {
			number := binary.BigEndian.Uint16(ids[12:])
			g.numbers[number] = append(g.numbers[number], at)
		}
		for id := range slices.Chunk(ids, size) {
			if bytes.Compare(id, last) <= 0 {
				g.descending++
			}
			last = id
			one := givenID{node: node[1]}
			copy(one.id[:], id)
			g.ids[generator] = append(g.ids[generator], one)
		}
	}
	return true
}

// findings counts errors in ids.
type findings struct {
	twice  int
	shared int // ids with the same number and time as an id of another node
}

func judge(ids []givenID, f format) (found findings) {
	tick := func(g givenID) [16]byte {
		g.id[f.size-1], g.id[f.size-2] = 0, g.id[f.size-2]&f.mask
		return g.id
	}
	slices.SortFunc(ids, func(a, b givenID) int { return bytes.Compare(a.id[:], b.id[:]) })
	for i := 1; i < len(ids); i++ {
		a, b := ids[i-1], ids[i]
		if a.id == b.id {
			found.twice++
		}
		if a.node != b.node && tick(a) == tick(b) {
			found.shared++
		}
	}
	return found
}

// table shows for how long each fault stopped the ids. A number counts as unused once it has not been used
// for a sixth of hold.
func (g *given) table(faults []fault) string {
	const none = "-"
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "after\tfault\tnode\tits ids stop after\tfor\tothers' at most\tothers that lose "+
		"theirs\tall numbers in use after")
	for _, f := range faults {
		from, to := f.from.UnixMicro(), f.to.UnixMicro()
		stop, its, others, lose := none, none, time.Duration(0), 0
		for _, node := range slices.Sorted(maps.Keys(g.at)) {
			gap, end := g.longest(node, from, to)
			if node == f.node {
				stop = show(time.Duration(max(end-gap.Microseconds()-from, 0)) * time.Microsecond)
			}
			switch {
			case node == f.node && end > to+settled.Microseconds():
				its = show(gap) + ", waiting for a number"
			case node == f.node:
				its = show(gap)
			case !g.served(node, from):
			case end > to+settled.Microseconds():
				lose++
			default:
				others = max(others, gap)
			}
		}
		all, last := none, from
		for _, at := range g.numbers {
			if gap, end := longest(at, from, to); gap > etcdHold/6 && end > last {
				all, last = show(time.Duration(end-from)*time.Microsecond), end
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", show(f.from.Sub(faults[0].from)), f.what,
			cmp.Or(f.node, none), stop, its, show(others), lose, all)
	}
	w.Flush()
	return out.String()
}

// served reports whether a node handed out ids just before a time.
func (g *given) served(node string, before int64) bool {
	for _, at := range g.at[node] {
		i, _ := slices.BinarySearch(at, before)
		if i == 0 || at[i-1] < before-settled.Microseconds() {
			return false
		}
	}
	return true
}

// longest returns the longest time for which any generator of a node handed out no ids.
func (g *given) longest(node string, from, to int64) (gap time.Duration, end int64) {
	for _, at := range g.at[node] {
		if d, e := longest(at, from, to); d > gap {
			gap, end = d, e
		}
	}
	return gap, end
}

func show(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// longest returns the longest time without an answer during a fault, and when it ended.
func longest(at []int64, from, to int64) (gap time.Duration, end int64) {
	first, _ := slices.BinarySearch(at, from)
	for i := max(first, 1); i < len(at) && at[i-1] < to; i++ {
		if d := time.Duration(at[i]-at[i-1]) * time.Microsecond; d > gap {
			gap, end = d, at[i]
		}
	}
	return gap, end
}

func TestFleetReads(t *testing.T) {
	answer := func(at uint64, ids string) []byte {
		return append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, at), uint16(len(ids))), ids...)
	}
	first, second := answer(1_000_000, "00000001"), answer(3_500_000, "0000000200000003")
	for _, tt := range []struct {
		data             []byte
		whole            bool
		descending, many int
	}{
		{slices.Concat(first, second), true, 0, 3}, {slices.Concat(first, second, second), true, 1, 5},
		{slices.Concat(second, first), true, 1, 3}, {slices.Concat(first, second[:9]), false, 0, 1},
		{second[:20], false, 0, 0},
	} {
		g := newGiven()
		if whole := g.add("n0@127.0.0.1", "orders", tt.data); whole != tt.whole || g.descending != tt.descending ||
			len(g.ids["orders"]) != tt.many {
			t.Errorf("%q: %v, %+v", tt.data, whole, g)
		}
	}
	at := []int64{1_000_000, 3_500_000, 3_600_000}
	if gap, end := longest(at, 2_000_000, 3_000_000); gap != 2500*time.Millisecond || end != 3_500_000 {
		t.Error(gap, end)
	}
}
