package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flake-go/flake/flake/snowflake"
)

// maker is a door to a node that makes ids as one worker.
type maker struct {
	scripted
	worker uint64
}

// decompose is that of ids whose last byte is the worker.
func (m *maker) decompose(_ context.Context, _ string, id []byte) ([]Field, error) {
	return []Field{{"time", 1}, {"datacenter", 9}, {"worker", uint64(id[len(id)-1])}, {"sequence", 2}}, nil
}

func newMaker(worker uint64) *maker {
	m := &maker{worker: worker}
	m.answer = m.next
	return m
}

func (*scripted) decompose(context.Context, string, []byte) ([]Field, error) { return nil, ErrUnknown }
func (*fake) decompose(context.Context, string, []byte) ([]Field, error)     { return nil, ErrUnknown }
func (*odd) decompose(context.Context, string, []byte) ([]Field, error)      { return nil, ErrUnknown }

var made uint64

func (m *maker) next(context.Context) (uint64, error) {
	made++
	return made<<8 | m.worker, nil
}

// Two nodes with one worker are reported, once, when ids have come from both.
func TestSameWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := fails(errors.New("down"))
		a, b, c := newMaker(5), newMaker(6), newMaker(5)
		f := NewFailover(a, b, c)
		var reports []string
		f.SameWorker = func(err error) { reports = append(reports, err.Error()) }
		ids := NewIDs[snowflake.ID](f, "orders")
		next := func(up *maker) {
			t.Helper()
			for _, m := range []*maker{a, b, c} {
				if m.answer = down; m == up {
					m.answer = m.next
				}
			}
			for range 2 {
				if _, err := ids.Next(t.Context()); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
		}
		next(a)
		next(b)
		if len(reports) > 0 {
			t.Errorf("two workers: %q", reports)
		}
		for range 2 {
			next(c)
			next(a)
			next(b)
		}
		const want = "nodes 1 and 3 of 3 hand out ids of generator orders with the same datacenter 9, worker 5:"
		if len(reports) != 1 || !strings.HasPrefix(reports[0], want) {
			t.Errorf("%q, want one %q", reports, want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A text does not tell the size of its id.
func TestSizeOfNumber(t *testing.T) {
	for want, id := range map[int]string{
		snowflakeSize: "\x1a\x4b\x0c\x00\x00\x00\x00\x01", snoSize: "\x10\x00\x00\x00\x00\x00\x00\x00\x00\x01",
		flakeSize: "\x00\x00\x01\x90\x00\x00\x00\x00\x02\x00\x00\x00\x00\x01\x00\x00",
	} {
		if got := sizeOfNumber(numberOfBytes([]byte(id))); got != want {
			t.Errorf("%x: %d, want %d", id, got, want)
		}
	}
}
