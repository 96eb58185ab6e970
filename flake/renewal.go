package flake

import (
	"errors"
	"fmt"
	"time"
)

var errSlow = fmt.Errorf("%w: the disk has not answered for %v", ErrTimestampNotSaved, patience)

// keep has the mark kept ahead from here on.
func (d *Durable) keep() {
	d.extend = d.await
	d.stopped = make(chan struct{})
	go d.run()
}

// run moves the mark every second, and at once when it is asked to.
func (d *Durable) run() {
	defer close(d.stopped)
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
		case <-d.kick:
		}
		d.settle(d.renew())
	}
}

// settle notes what an attempt came to, and wakes those who await it.
func (d *Durable) settle(err error) {
	d.mu.Lock()
	before := d.err
	d.err = err
	close(d.round)
	d.round = make(chan struct{})
	d.mu.Unlock()
	switch {
	case err != nil && (before == nil || errors.Is(before, errSlow)):
		d.log.Error("the timestamp cannot be saved: ids go on to the mark, and then stop until it can", "err", err, "mark", d.Mark())
	case err == nil && before != nil:
		d.log.Info("the timestamp is saved again", "path", d.file.Path())
	}
}

// await is the generator's extend: the clock is past the mark. As a rule that
// means that the machine slept, or the clock was set ahead, and the file only
// needs to be written. While it cannot be, callers are told so at once, and run
// goes on trying.
func (d *Durable) await(milli uint64) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		d.mu.Lock()
		round, err := d.round, d.err
		d.mu.Unlock()
		// Looked at after the round, so that its end cannot be missed.
		if milli <= d.limit.Load() {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case d.kick <- struct{}{}:
		default: // already asked for
		}
		select {
		case <-round:
		case <-d.stop:
			return ErrClosed
		case <-timer.C:
			return d.slow(round)
		}
	}
}

// slow notes that an attempt takes too long, so that the next callers do not
// wait for it.
func (d *Durable) slow(round chan struct{}) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.round == round && d.err == nil {
		d.err = errSlow
		d.log.Error(errSlow.Error(), "path", d.file.Path(), "mark", d.Mark())
	}
	return errSlow
}
