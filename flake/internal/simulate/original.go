package simulate

import (
	"errors"
	"io/fs"
	"strconv"
	"time"
)

// Original is a model of the Erlang server's rules: a sequence of 16 bits that
// wraps, a file written in place each second without fsync, state that is lost
// when the server crashes on a call it does not know.
type Original struct {
	m        *Machine
	maxTime  uint64
	sequence uint16
}

// NewOriginal gives an Original on a machine.
func NewOriginal(m *Machine) Node { return &Original{m: m} }

const originalPath = "/flake-timestamp"

var (
	errBackwards = errors.New("clock_running_backwards")
	errAdvanced  = errors.New("clock_advanced")
)

func (o *Original) Start(allowable time.Duration) error {
	now := o.m.Clock()
	data, err := o.m.Disk.Read(originalPath, 20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A file that cannot be made out is taken for none.
	if last, err := strconv.ParseUint(string(data), 10, 64); err == nil {
		if now < last {
			return errBackwards
		}
		if now-last > uint64(allowable/time.Millisecond) {
			return errAdvanced
		}
	}
	o.maxTime, o.sequence = now, 0
	return nil
}

// IDs: it takes one call at a time.
func (o *Original) IDs(n int, got Got) (err error) {
	o.m.Undisturbed(func() { err = o.ids(n, got) })
	return err
}

func (o *Original) ids(n int, got Got) error {
	for range n {
		now := o.m.Clock()
		switch {
		case now < o.maxTime:
			return errBackwards
		case now == o.maxTime:
			o.sequence++
		default:
			o.maxTime, o.sequence = now, 0
		}
		got(o.maxTime, uint32(o.sequence))
	}
	return nil
}

// BadCall: the supervisor starts the server again, at the time it then is.
func (o *Original) BadCall() { o.maxTime, o.sequence = o.m.Clock(), 0 }

func (o *Original) Tick() {
	if w, err := o.m.Disk.Create(originalPath); err == nil {
		w.Write(strconv.AppendUint(nil, o.maxTime, 10))
		w.Close()
	}
}

func (o *Original) Stop() { o.Tick() }
