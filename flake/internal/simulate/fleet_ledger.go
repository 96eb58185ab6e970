package simulate

// fleetLedger has every id of a fleet, and finds what must not be: an id twice; two
// owners of a number with ids of one time; ids of a node that do not ascend; an id
// later than all marks that the store has had of its number.
type fleetLedger struct {
	f       *fleet
	runs    map[[2]uint64][]run // by number and tick
	tenures map[uint64][]*tenure
	last    map[*Disk]uint64 // tick of a node's last id, as long as it has its disk
}

// tenure is a generator of a member's, with a number.
type tenure struct {
	m           *Member
	number      uint64
	first, last uint64 // ticks of its ids
	used        int    // of the last tick
}

func newFleetLedger(f *fleet) *fleetLedger {
	return &fleetLedger{f, map[[2]uint64][]run{}, map[uint64][]*tenure{}, map[*Disk]uint64{}}
}

func (l *fleetLedger) tenure(m *Member, number uint64) *tenure {
	return &tenure{m: m, number: number}
}

func (l *fleetLedger) add(of *tenure, milli uint64, first, n int) {
	r, disk := l.f.report, of.m.machine.Disk
	r.IDs += n
	if of.first == 0 {
		of.first = milli
		l.tenures[of.number] = append(l.tenures[of.number], of)
		if milli <= l.last[disk] {
			l.f.wrong(&r.Disorders, "%d: the first id with number %d, of %d, is not above the last, of %d", of.m.index, of.number, milli, l.last[disk])
		}
	} else if milli < of.last || milli == of.last && first < of.used {
		l.f.wrong(&r.Disorders, "%d: id %d:%d after %d:%d", of.m.index, milli, first, of.last, of.used)
	}
	of.last, of.used, l.last[disk] = milli, first+n, milli
	for _, other := range l.tenures[of.number] {
		if other != of && other.first <= milli && of.first <= other.last {
			l.f.wrong(&r.Overlaps, "number %d: %d makes ids of %d, as %d does", of.number, of.m.index, milli, other.m.index)
			break
		}
	}
	key := [2]uint64{of.number, milli}
	mine := run{uint32(first), uint32(first + n - 1)}
	for _, other := range l.runs[key] {
		if mine.first <= other.last && other.first <= mine.last {
			l.f.wrong(&r.Duplicates, "number %d: id %d:%d of %d is there", of.number, milli, first, of.m.index)
			break
		}
	}
	l.runs[key] = append(l.runs[key], mine)
	if l.f.Keep == nil && milli > l.f.store.marks[of.number] {
		l.f.wrong(&r.PastMark, "number %d: id of %d, with the mark at %d", of.number, milli, l.f.store.marks[of.number])
	}
}
