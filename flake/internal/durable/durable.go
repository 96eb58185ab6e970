package durable

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Keeper keeps the mark of a [Source] ahead. Close it when done.
type Keeper struct {
	source Source
	file   *mark.File
	log    *slog.Logger
	told   func(time.Duration) // how long it took to write the file

	mark   atomic.Uint64 // what was written last
	saving sync.Mutex    // held while the file is written
	ended  bool          // the source is closed; under saving

	mu    sync.Mutex
	round chan struct{} // closed when the next attempt at the file ends
	err   error         // what the last one came to
	saved uint64        // when the last good one was

	ahead  time.Duration // how far the clock was when run looked last, and not believed
	behind bool          // whether it was far behind
	seen   uint64        // what it was

	kick, stop chan struct{}
	stopped    chan struct{} // closed when run has ended; nil if it was not begun
	closing    sync.Once
	closeErr   error
}

// Renew moves the mark ahead and lets the source use the time up to it. It fails
// with [tick.ErrTimestampNotSaved] or [tick.ErrClosed].
func (k *Keeper) Renew() error {
	k.saving.Lock()
	defer k.saving.Unlock()
	if k.ended {
		return tick.ErrClosed
	}
	// The limit comes before the words: they may be of a later one, but never is
	// one raised by words from before it.
	limit, now := k.source.Limit(), k.source.Now()
	k.source.Lower(now + window)
	to := min(max(now+window, limit.Milli()), limit.Last()) // not below an id, if the clock was set back
	if err := k.save(to, now); err != nil {
		return fmt.Errorf("%w: %w", tick.ErrTimestampNotSaved, err)
	}
	limit.Set(to)
	return nil
}

func (k *Keeper) save(to, now uint64) error {
	var words []uint64
	if s, ok := k.source.(Stateful); ok {
		words = s.Words()
	}
	start := time.Now()
	err := k.file.Save(mark.Mark{Milli: to, Words: words})
	k.told(time.Since(start))
	if err != nil {
		return err
	}
	k.mark.Store(to)
	k.mu.Lock()
	k.saved = now
	k.mu.Unlock()
	return nil
}

// Mark is the time that no id is later than, as it stands in the file.
func (k *Keeper) Mark() time.Time { return time.UnixMilli(int64(k.mark.Load())).UTC() }

// LastSaved is the time at which the file was last written, and the trouble
// there has been with it since, or nil.
func (k *Keeper) LastSaved() (time.Time, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.UnixMilli(int64(k.saved)).UTC(), k.err
}

// Ready tells whether all is well with the file, or else what the trouble is. A
// file that cannot be written is some before it leaves no ids.
func (k *Keeper) Ready() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Close ends the source, brings the mark back from ahead of the clock, so that
// the next start need not wait, and gives up the lock. Calls under way and later
// fail with [tick.ErrClosed]. Close waits for the disk; if it cannot write, the
// next start waits instead. A second Close gives what the first did.
func (k *Keeper) Close() error {
	k.closing.Do(func() {
		close(k.stop)
		if k.stopped != nil {
			<-k.stopped
		}
		k.closeErr = k.end()
	})
	return k.closeErr
}

func (k *Keeper) end() error {
	k.saving.Lock()
	defer k.saving.Unlock()
	// The source is closed before the mark is lowered: no id can come after. The
	// mark stays at the clock if there were no ids of late, for it also tells
	// how long nothing has run.
	last, now := k.source.Close(), k.source.Now()
	k.ended = true
	err := k.save(max(last, min(now, k.source.Limit().Milli())), now)
	k.mu.Lock()
	k.err = err
	k.mu.Unlock()
	return errors.Join(err, k.file.Close())
}
