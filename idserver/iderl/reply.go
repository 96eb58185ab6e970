package iderl

import (
	"encoding/binary"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
)

// terms appends the terms of a reply to dst.
type terms struct {
	dst    []byte
	caps   etf.Caps
	format *formats.Format
	base   int
}

func (t *terms) atom(a etf.Atom) { t.dst = etf.MustAppendAtom(t.dst, a, t.caps) }
func (t *terms) pair()           { t.dst = etf.AppendTupleHeader(t.dst, 2) }
func (t *terms) list(n int)      { t.dst = etf.AppendListHeader(t.dst, n) }
func (t *terms) end()            { t.dst = etf.AppendNil(t.dst) }

// result begins {ok, Result} and returns true, or appends {error, Reason} and returns false. If
// it returns true, the caller must append Result.
func (t *terms) result(err error) bool {
	t.pair()
	if err != nil {
		t.atom("error")
		t.atom(etf.Atom(idserver.Reason(err)))
		return false
	}
	t.atom("ok")
	return true
}

// id appends an id. If it is a string, it has 1 to 128 characters, whatever the format and base.
func (t *terms) id(id formats.Number) {
	if t.base == formats.Octets {
		size := t.format.Size
		t.dst = id.AppendOctets(append(t.dst, byte(etf.BinaryExt), 0, 0, 0, byte(size)), size)
		return
	}
	t.dst = append(t.dst, byte(etf.StringExt), 0, 0)
	start := len(t.dst)
	t.dst = t.format.Append(t.dst, id, t.base)
	t.dst[start-1] = byte(len(t.dst) - start)
}

// ids appends the n ids of runs as a list.
func (t *terms) ids(n int, runs []formats.Run) {
	t.list(n)
	for id := range idserver.All(runs) {
		t.id(id)
	}
	t.end()
}

// packed appends the n ids of runs as one binary.
func (t *terms) packed(n int, runs []formats.Run) {
	size := t.format.Size
	t.dst = binary.BigEndian.AppendUint32(append(t.dst, byte(etf.BinaryExt)), uint32(size*n))
	for id := range idserver.All(runs) {
		t.dst = id.AppendOctets(t.dst, size)
	}
}

// runs appends a list of {FirstId, Count}.
func (t *terms) runs(runs []formats.Run) {
	t.list(len(runs))
	for _, run := range runs {
		t.pair()
		t.id(run.First)
		t.dst = etf.AppendInt(t.dst, int64(run.Count))
	}
	t.end()
}

// fields appends a list of {Field, Value}.
func (t *terms) fields(fields []formats.Field) {
	t.list(len(fields))
	for _, f := range fields {
		t.pair()
		t.atom(etf.Atom(f.Name))
		t.dst = etf.AppendUint64(t.dst, f.Value)
	}
	t.end()
}

// info appends a list of {Property, Value}, leaving out unknown properties.
func (t *terms) info(i idserver.Info, version string) {
	list := etf.List{
		property("format", etf.Atom(i.Format)),
		property("worker", int64(i.Worker)),
		property("ids", int64(i.IDs)),
		property("waits", int64(i.Waits)),
		property("refusals", int64(i.Refusals)),
		property("last", int64(i.Last)),
	}
	if i.Mark != 0 {
		list = append(list, property("mark", i.Mark))
	}
	list = append(list, property("uptime", i.Uptime), property("version", etf.String(version)))
	if i.WorkerFrom != "" {
		list = append(list, property("worker_from", etf.String(i.WorkerFrom)))
	}
	if i.WorkerUntil != 0 {
		list = append(list, property("worker_until", i.WorkerUntil), property("worker_left", i.WorkerLeft))
	}
	if i.WorkerError != "" {
		list = append(list, property("worker_error", etf.String(i.WorkerError)))
	}
	t.dst, _ = etf.Append(t.dst, list, t.caps) // every peer can read these terms
}

func property(name etf.Atom, value etf.Term) etf.Term { return etf.Tuple{name, value} }
