package flakehttp

import (
	"encoding/binary"
	"iter"
	"net/http"
	"strconv"
	"sync"

	"github.com/flake-go/flake/flake/flakeserver"
)

// chunk is how many octets of ids are written at a time, however many there are:
// a run of ids takes none until then.
const chunk = 16 << 10

// maxText is the longest text of an id, in base 2.
const maxText = 128

var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// body gathers an answer and writes it a chunk at a time. Once a write has
// failed nobody is there any more, and nothing is made.
type body struct {
	w      http.ResponseWriter
	buf    []byte
	failed bool
}

// answerWith has fill make the body.
func answerWith(w http.ResponseWriter, fill func(*body)) {
	buf := buffers.Get().(*[chunk]byte)
	defer buffers.Put(buf)
	b := &body{w: w, buf: buf[:0]}
	fill(b)
	b.flush()
}

// room reports whether one more element is wanted, and makes room for it.
func (b *body) room() bool {
	const most = maxText + 64 // of an id, with its count and what is around them
	if cap(b.buf)-len(b.buf) < most {
		b.flush()
	}
	return !b.failed
}

func (b *body) flush() {
	if len(b.buf) > 0 && !b.failed {
		_, err := b.w.Write(b.buf)
		b.failed = err != nil
	}
	b.buf = b.buf[:0]
}

func (b *body) put(s string) { b.buf = append(b.buf, s...) }

// all gives the ids of a reply.
func (q *question) all() iter.Seq[flakeserver.Number] {
	if q.reply.Op != flakeserver.OpGet {
		return q.reply.IDs()
	}
	return func(yield func(flakeserver.Number) bool) { yield(q.reply.ID) }
}

// writeIDs gives one id a line, {"ids":["...",...]}, or the octets of all.
func (q *question) writeIDs(w http.ResponseWriter) {
	answerWith(w, func(b *body) {
		before, between, after := "", "\n", "\n"
		switch q.media {
		case asJSON:
			before, between, after = `{"ids":["`, `","`, `"]}`+"\n"
		case octets:
			between, after = "", ""
		}
		b.put(before)
		first := true
		for id := range q.all() {
			if !b.room() {
				return
			}
			if !first {
				b.put(between)
			}
			first = false
			b.buf = q.reply.AppendID(b.buf, id)
		}
		b.put(after)
	})
}

// writeRuns gives a line "ID COUNT" a run, {"leases":[{"first":"...","count":N},...]},
// or the octets of the first id and of the count, of which there are 4.
func (q *question) writeRuns(w http.ResponseWriter) {
	answerWith(w, func(b *body) {
		if q.media == asJSON {
			b.put(`{"leases":[`)
		}
		for i, run := range q.reply.Runs {
			if !b.room() {
				return
			}
			switch q.media {
			case octets:
				b.buf = binary.BigEndian.AppendUint32(q.reply.AppendID(b.buf, run.First), uint32(run.Count))
			case asJSON:
				if i > 0 {
					b.put(",")
				}
				b.put(`{"first":"`)
				b.buf = q.reply.AppendID(b.buf, run.First)
				b.put(`","count":`)
				b.buf = append(strconv.AppendInt(b.buf, int64(run.Count), 10), '}')
			default:
				b.buf = append(q.reply.AppendID(b.buf, run.First), ' ')
				b.buf = append(strconv.AppendInt(b.buf, int64(run.Count), 10), '\n')
			}
		}
		if q.media == asJSON {
			b.put("]}\n")
		}
	})
}

// writeSpan gives the id of a time, {"id":"..."}, or the lowest and the highest
// of a span, {"lowest":"...","highest":"..."}; as text a line each.
func (q *question) writeSpan(w http.ResponseWriter) {
	names := []string{"id"}
	ids := []flakeserver.Number{q.reply.ID}
	if q.reply.Op == flakeserver.OpSpan {
		names = []string{"lowest", "highest"}
		ids = append(ids, q.reply.Highest)
	}
	answerWith(w, func(b *body) {
		for i, id := range ids {
			switch q.media {
			case octets:
				b.buf = q.reply.AppendID(b.buf, id)
			case asJSON:
				b.put([]string{`{"`, `,"`}[i] + names[i] + `":"`)
				b.buf = q.reply.AppendID(b.buf, id)
				b.put(`"`)
			default:
				b.buf = append(q.reply.AppendID(b.buf, id), '\n')
			}
		}
		if q.media == asJSON {
			b.put("}\n")
		}
	})
}
