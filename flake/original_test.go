package flake

import (
	"errors"
	"io/fs"
	"strconv"
	"time"

	"github.com/flake-go/flake/flake/internal/simulate"
)

// original is a model of the Erlang server's rules: the 16-bit sequence wraps, the file is
// written in place each second without fsync, and an unknown call crashes the server, which
// loses its state.
type original struct {
	m        *simulate.Machine
	maxTime  uint64
	sequence uint16
}

func newOriginal(m *simulate.Machine) simulate.Node { return &original{m: m} }

const originalPath = "/flake-timestamp"

var (
	errBackwards = errors.New("clock_running_backwards")
	errAdvanced  = errors.New("clock_advanced")
)

func (o *original) Start(allowable time.Duration) error {
	now := o.m.Clock()
	data, err := o.m.Disk.Read(originalPath, 20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A file that cannot be parsed is ignored.
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

// The server handles one call at a time.
func (o *original) IDs(n int, got simulate.Got) (err error) {
	o.m.Undisturbed(func() { err = o.ids(n, got) })
	return err
}

func (o *original) ids(n int, got simulate.Got) error {
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

// The server crashes, and its supervisor restarts it at the current time.
func (o *original) BadCall() { o.maxTime, o.sequence = o.m.Clock(), 0 }

func (o *original) Tick() { o.m.Disk.Write(originalPath, strconv.AppendUint(nil, o.maxTime, 10)) }

func (o *original) Stop() { o.Tick() }
