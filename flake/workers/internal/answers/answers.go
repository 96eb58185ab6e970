// Package answers holds what all stores learn from their answers: that a store may have lost writes,
// and how far a clock is ahead.
package answers

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrRestored means that a store was restored, or may have lost writes in another way.
var ErrRestored = errors.New("the store may have lost writes")

// History is what the answers of a store showed since the last restore, for [workers.Restorable].
// The zero History is empty. F is a set of facts.
type History[F any] struct {
	mu   sync.Mutex // guards seen
	seen Seen[F]
}

// Seen is a history at a point in time.
type Seen[F any] struct {
	Facts    F
	Restores int    // how many signs Restored has returned
	sign     string // the sign of a restore, or empty
}

func (s *Seen[F]) err() error {
	if s.sign == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrRestored, s.sign)
}

// Restored returns the sign, once, and empties the history.
func (h *History[F]) Restored() (sign string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seen
	if s.sign != "" {
		h.seen = Seen[F]{Restores: s.Restores + 1}
	}
	return s.sign, s.sign != ""
}

// Before returns the history with which to compare the answer to a new request, or the sign as an
// error. That history must not contain answers that arrive during the request, since the order of
// answers is unknown.
func (h *History[F]) Before() (Seen[F], error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen, h.seen.err()
}

// Note adds the answer to a request, unless there was a sign since before. It calls add, which adds
// the answer to the facts, and returns the sign of a restore, if the answer is one. If the answer
// must not be used, Note returns an error: add's, or the sign.
func (h *History[F]) Note(before Seen[F], add func(*F) (sign string, err error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.seen.Restores != before.Restores:
		return fmt.Errorf("%w during the request", ErrRestored)
	case h.seen.sign != "":
		return h.seen.err()
	}
	sign, err := add(&h.seen.Facts)
	h.seen.sign = sign
	return cmp.Or(err, h.seen.err())
}

// Clocks returns what [workers.Dated] wants. It calls ask for all machines, in parallel, which
// returns a machine's time in whole units, or a zero time if the machine does not answer. Clocks
// allows for the time that the answer took, and for the unit.
func Clocks[M any](
	machines []M, unit time.Duration, now func() uint64, ask func(M) time.Time,
) (ahead []time.Duration) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range machines {
		wg.Go(func() {
			asked := time.UnixMilli(int64(now()))
			date := ask(m)
			answered := time.UnixMilli(int64(now()))
			if date.IsZero() {
				return
			}
			low, high := asked.Sub(date.Add(unit)), answered.Sub(date)
			mu.Lock()
			defer mu.Unlock()
			ahead = append(ahead, max(low, min(high, 0)))
		})
	}
	wg.Wait()
	return ahead
}
