package idhttp

import (
	"bufio"
	"encoding/binary"
	"net/http"
	"strconv"
	"sync"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
)

// chunk is the number of bytes of ids written at a time. The other ids of a run take no memory.
const chunk = 16 << 10

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, chunk) }}

// body writes an answer in chunks. A failed write means that the caller has gone; after it, body
// writes nothing.
type body struct {
	question
	*bufio.Writer
}

func (q *question) body(w http.ResponseWriter) body {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = mediaHeader[q.media], noStore
	b := body{*q, writers.Get().(*bufio.Writer)}
	b.Reset(w)
	return b
}

// add appends an id and, unless it is 0, a count, as a line, as bytes or in JSON. In JSON, the
// argument before precedes the id. It reports whether the caller is still connected.
func (b *body) add(before string, id formats.Number, count int) bool {
	buf := b.AvailableBuffer()
	if b.media == asJSON {
		buf = append(buf, before...)
	}
	buf = b.format.Append(buf, id, b.base)
	if count > 0 {
		switch b.media {
		case octets:
			buf = binary.BigEndian.AppendUint32(buf, uint32(count))
		case asJSON:
			buf = strconv.AppendInt(append(buf, `","count":`...), int64(count), 10)
		case text:
			buf = strconv.AppendInt(append(buf, ' '), int64(count), 10)
		}
	}
	if b.media == text {
		buf = append(buf, '\n')
	}
	_, err := b.Write(buf)
	return err == nil
}

// end writes what is left. A JSON body ends with the argument after.
func (b *body) end(after string) {
	if b.media == asJSON {
		b.WriteString(after)
		b.WriteByte('\n')
	}
	b.Flush()
	writers.Put(b.Writer)
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
		b.add(before, run.First, run.Count)
		before = `},{"first":"`
	}
}
