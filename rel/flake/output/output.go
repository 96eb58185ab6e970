// Package output writes lines, such as the log's, without delaying the writer, and formats times and JSON.
//
// Start at [New] and [OpenLog].
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// maxQueued is the number of lines that may wait for an output's reader, and outputEnd is how
// long Close waits for them to be written.
const (
	maxQueued = 1000
	outputEnd = time.Second
)

// output never blocks its callers. If its reader, such as a log collector or a terminal, is too
// slow, lines are dropped and counted.
type output struct {
	w     io.Writer
	lines chan []byte
	done  chan struct{} // closed when the last line is written
	lost  func(n int64) // writes how many lines were dropped

	dropped atomic.Int64 // lines, since the last report

	mu     sync.Mutex // guards closed, and sending to lines
	closed bool
}

// New returns an output that writes its lines to w.
func New(w io.Writer) *output {
	return open(w, func(n int64) { fmt.Fprintf(w, "%d lines dropped: they were not read in time\n", n) })
}

func open(w io.Writer, lost func(n int64)) *output {
	o := &output{w: w, lines: make(chan []byte, maxQueued), done: make(chan struct{}), lost: lost}
	go o.run()
	return o
}

// Write queues a copy of a line or drops it. It never waits or fails.
func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(line), nil
	}
	select {
	case o.lines <- bytes.Clone(line):
	default:
		o.dropped.Add(1)
	}
	return len(line), nil
}

func (o *output) run() {
	defer close(o.done)
	for line := range o.lines {
		o.w.Write(line) // an error could not be reported anywhere
		if n := o.dropped.Swap(0); n > 0 {
			o.lost(n)
		}
	}
}

// Close waits up to outputEnd for the remaining lines to be written.
func (o *output) Close() {
	o.end()
	select {
	case <-o.done:
	case <-time.After(outputEnd):
	}
}

// end makes run return after the lines that are queued.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	close(o.lines)
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// PrintJSON writes v, escaping what is not printable.
func PrintJSON(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	var b []byte
	for _, r := range text.String() {
		if r == '\n' || unicode.IsPrint(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	_, err := w.Write(b)
	return err
}

// Seconds returns a time in ms since 1970 as text, to the second.
func Seconds(milli uint64) string { return time.UnixMilli(int64(milli)).UTC().Format(time.RFC3339) }

// Milliseconds returns a time as text, to the millisecond.
func Milliseconds(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
