package simulate

// fleetLedger has every id of a fleet, and finds what must not be: an id twice; two
// owners of a number with ids of one time; ids of a node that do not ascend; an id
// later than all marks that the store has had of its number.
type fleetLedger struct {
	f       *fleet
	runs    map[place][]run
	tenures map[kind][]*tenure
	last    map[lasting]uint64 // tick of the last id
	own     map[*Disk]uint64   // numbers that are not of the store, but stay with a disk
}

// kind is what two ids have in common that may be the same but for their time.
type kind struct {
	format int
	number uint64
}

type place struct {
	kind
	milli uint64
}

// lasting is a generator of a node, as long as the node has its disk.
type lasting struct {
	disk   *Disk
	format int
}

// tenure is a generator of a member's, with a number.
type tenure struct {
	kind
	m           *Member
	first, last uint64 // ticks of its ids
	used        int    // of the last tick
}

func newFleetLedger(f *fleet) *fleetLedger {
	return &fleetLedger{f, map[place][]run{}, map[kind][]*tenure{}, map[lasting]uint64{}, map[*Disk]uint64{}}
}

func (l *fleetLedger) tenure(m *Member, format int, number uint64) *tenure {
	return &tenure{kind: kind{format, number}, m: m}
}

// ownNumber is the number of a disk.
func (l *fleetLedger) ownNumber(d *Disk) uint64 {
	if l.own[d] == 0 {
		l.own[d] = uint64(numbers + 1 + len(l.own))
	}
	return l.own[d]
}

func (l *fleetLedger) add(of *tenure, milli uint64, first, n int) {
	r, node := l.f.report, lasting{of.m.machine.Disk, of.format}
	r.IDs += n
	if of.first == 0 {
		of.first = milli
		l.tenures[of.kind] = append(l.tenures[of.kind], of)
		if milli <= l.last[node] {
			l.f.wrong(&r.Disorders, "%d: the first id of %v, of %d, is not above the last, of %d", of.m.index, of.kind, milli, l.last[node])
		}
	} else if milli < of.last || milli == of.last && first < of.used {
		l.f.wrong(&r.Disorders, "%d: id %d:%d after %d:%d", of.m.index, milli, first, of.last, of.used)
	}
	of.last, of.used, l.last[node] = milli, first+n, milli
	for _, other := range l.tenures[of.kind] {
		if other != of && other.first <= milli && of.first <= other.last {
			l.f.wrong(&r.Overlaps, "%v: %d makes ids of %d, as %d does", of.kind, of.m.index, milli, other.m.index)
			break
		}
	}
	key := place{of.kind, milli}
	mine := run{uint32(first), uint32(first + n - 1)}
	for _, other := range l.runs[key] {
		if mine.first <= other.last && other.first <= mine.last {
			l.f.wrong(&r.Duplicates, "%v: id %d:%d of %d is there", of.kind, milli, first, of.m.index)
			break
		}
	}
	l.runs[key] = append(l.runs[key], mine)
	if of.number <= numbers && milli > l.f.store.marks[of.number] {
		l.f.wrong(&r.PastMark, "number %d: id of %d, with the mark at %d", of.number, milli, l.f.store.marks[of.number])
	}
}
