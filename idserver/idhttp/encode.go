package idhttp

import (
	"encoding/binary"
	"net/http"
	"runtime"
	"strconv"
	"sync"

	"github.com/flake-go/flake/flake/formats"
)

// chunk is the number of bytes of ids written at a time. Ids of a run take no memory before
// they are written.
const chunk = 16 << 10

var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// body collects an answer and writes it in chunks. A failed write means that the caller has
// gone, and ends the answer.
type body struct {
	w      http.ResponseWriter
	whole  *[chunk]byte
	buf    []byte // a prefix of whole
	failed bool
}

func (q *question) body(w http.ResponseWriter) body {
	h := w.Header()
	h["Content-Type"] = mediaHeader[q.media]
	h["Cache-Control"] = noStore
	whole := buffers.Get().(*[chunk]byte)
	return body{w: w, whole: whole, buf: whole[:0]}
}

func (b *body) end() {
	b.flush()
	buffers.Put(b.whole)
}

// room makes room for one more element and reports whether the caller is still connected. It
// lets other goroutines run after each chunk.
func (b *body) room() bool {
	const most = formats.MaxText + 64 // bytes of an id, a count and the punctuation around them
	if cap(b.buf)-len(b.buf) < most {
		b.flush()
		runtime.Gosched()
	}
	return !b.failed
}

func (b *body) flush() {
	if len(b.buf) > 0 {
		_, err := b.w.Write(b.buf)
		b.failed = err != nil
	}
	b.buf = b.buf[:0]
}

func (b *body) put(s string) { b.buf = append(b.buf, s...) }

// writeIDs writes one id per line, or {"ids":["...",...]}, or the bytes of all ids.
func (q *question) writeIDs(w http.ResponseWriter, runs []formats.Run) {
	b := q.body(w)
	defer b.end()
	between, after := "\n", "\n"
	switch q.media {
	case asJSON:
		between, after = `","`, `"]}`+"\n"
		b.put(`{"ids":["`)
	case octets:
		between, after = "", ""
	}
	for n, run := range runs {
		for i := range run.Count {
			if !b.room() {
				return
			}
			if n > 0 || i > 0 {
				b.put(between)
			}
			b.buf = q.appendID(b.buf, run.At(i))
		}
	}
	b.put(after)
}

// writeRuns writes a line "ID COUNT" for each run, or {"leases":[{"first":"...","count":N},...]},
// or for each run the bytes of its first id and a count of 4 bytes.
func (q *question) writeRuns(w http.ResponseWriter, runs []formats.Run) {
	b := q.body(w)
	defer b.end()
	if q.media == asJSON {
		b.put(`{"leases":[`)
	}
	for i, run := range runs {
		if !b.room() {
			return
		}
		switch q.media {
		case octets:
			b.buf = binary.BigEndian.AppendUint32(q.appendID(b.buf, run.First), uint32(run.Count))
		case asJSON:
			if i > 0 {
				b.put(",")
			}
			b.put(`{"first":"`)
			b.buf = q.appendID(b.buf, run.First)
			b.put(`","count":`)
			b.buf = append(strconv.AppendInt(b.buf, int64(run.Count), 10), '}')
		default:
			b.buf = append(q.appendID(b.buf, run.First), ' ')
			b.buf = append(strconv.AppendInt(b.buf, int64(run.Count), 10), '\n')
		}
	}
	if q.media == asJSON {
		b.put("]}\n")
	}
}

// bound is the lowest or highest id with a time, and its name in JSON.
type bound struct {
	name string
	id   formats.Number
}

// writeBounds writes a line for each id, or {"id":"..."} or {"lowest":"...","highest":"..."},
// or the bytes of the ids.
func (q *question) writeBounds(w http.ResponseWriter, bounds []bound) {
	b := q.body(w)
	defer b.end()
	between := "{"
	for _, bound := range bounds {
		if q.media == asJSON {
			b.put(between + `"` + bound.name + `":"`)
			between = ","
		}
		b.buf = q.appendID(b.buf, bound.id)
		switch q.media {
		case asJSON:
			b.put(`"`)
		case text:
			b.put("\n")
		}
	}
	if q.media == asJSON {
		b.put("}\n")
	}
}

func (q *question) appendID(dst []byte, id formats.Number) []byte {
	return q.format.Append(dst, id, q.base)
}
