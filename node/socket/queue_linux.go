package socket

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/flake-go/flake/node/reserve"
)

// queue measures how long a thread waits for its turn to run.
type queue struct {
	*os.File
	text [64]byte
}

// openQueue opens that of the calling thread: schedstat of proc(5).
func openQueue() queue {
	f, _ := os.Open("/proc/thread-self/schedstat")
	if f != nil && reserve.Check(f) != nil {
		f.Close()
		f = nil
	}
	return queue{File: f} // a nil file returns errors
}

// look returns how long the thread has waited in all.
func (q *queue) look() (waited time.Duration, err error) {
	n, err := q.ReadAt(q.text[:], 0)
	if n == 0 {
		return 0, err
	}
	if string(q.text[:n]) == "0 0 0\n" { // not even its running time: nothing is counted
		return 0, errors.ErrUnsupported
	}
	_, rest, _ := bytes.Cut(q.text[:n], []byte(" ")) // skips how long it has run
	field, _, _ := bytes.Cut(rest, []byte(" "))
	ns, err := strconv.ParseInt(string(field), 10, 64)
	return time.Duration(ns), err
}
