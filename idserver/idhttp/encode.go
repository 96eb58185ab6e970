package idhttp

import (
	"encoding/binary"
	"net/http"
	"strconv"
	"sync"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
)

// chunk is the number of bytes of ids written at a time. Ids of a run take no memory before
// they are written.
const chunk = 16 << 10

var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// body collects an answer and writes it in chunks. A failed write means that the caller has
// gone, and ends the answer.
type body struct {
	question
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
	return body{question: *q, w: w, whole: whole, buf: whole[:0]}
}

// add appends an id and, unless it is 0, a count: as a line, as bytes, or in JSON, preceded by
// before. It reports whether the caller is still connected.
func (b *body) add(before string, id formats.Number, count int) bool {
	const most = formats.MaxText + 64 // bytes of an id, a count and the text around them
	if cap(b.buf)-len(b.buf) < most {
		if b.flush(); b.failed {
			return false
		}
	}
	if b.media == asJSON {
		b.buf = append(b.buf, before...)
	}
	b.buf = b.format.Append(b.buf, id, b.base)
	if count > 0 {
		switch b.media {
		case octets:
			b.buf = binary.BigEndian.AppendUint32(b.buf, uint32(count))
		case asJSON:
			b.buf = strconv.AppendInt(append(b.buf, `","count":`...), int64(count), 10)
		case text:
			b.buf = strconv.AppendInt(append(b.buf, ' '), int64(count), 10)
		}
	}
	if b.media == text {
		b.buf = append(b.buf, '\n')
	}
	return true
}

func (b *body) flush() {
	if len(b.buf) > 0 && !b.failed {
		_, err := b.w.Write(b.buf)
		b.failed = err != nil
	}
	b.buf = b.buf[:0]
}

// end appends after, if the body is JSON, and writes what is left.
func (b *body) end(after string) {
	if b.media == asJSON {
		b.buf = append(append(b.buf, after...), '\n')
	}
	b.flush()
	buffers.Put(b.whole)
}

// writeIDs writes one id per line, or {"ids":["...",...]}, or the bytes of all ids.
func (q *question) writeIDs(w http.ResponseWriter, runs []formats.Run) {
	b := q.body(w)
	defer b.end(`"]}`)
	before := `{"ids":["`
	for id := range idserver.All(runs) {
		if !b.add(before, id, 0) {
			return
		}
		before = `","`
	}
}

// writeRuns writes a line "ID COUNT" for each run, or {"leases":[{"first":"...","count":N},...]},
// or for each run the bytes of its first id and a count of 4 bytes.
func (q *question) writeRuns(w http.ResponseWriter, runs []formats.Run) {
	b := q.body(w)
	defer b.end("}]}")
	before := `{"leases":[{"first":"`
	for _, run := range runs {
		if !b.add(before, run.First, run.Count) {
			return
		}
		before = `},{"first":"`
	}
}
