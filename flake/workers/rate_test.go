package workers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

type counted struct {
	Store
	reads, writes int
}

func (s *counted) List(ctx context.Context, prefix string) (map[string]string, error) {
	s.reads++
	return s.Store.List(ctx, prefix)
}

func (s *counted) Get(ctx context.Context, keys ...string) ([]string, error) {
	s.reads++
	return s.Store.Get(ctx, keys...)
}

func (s *counted) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	s.writes++
	return s.Store.Swap(ctx, have, write)
}

// A node writes once each third of hold, or up to an eighth of that earlier, and reads only to
// claim.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const thirds = 1000
		other := Value{Mark: uint64(time.Now().UnixMilli()), Generation: 1, Token: 99, Name: "b"}
		s := &counted{Store: &memStore{data: map[string]string{
			keys{"p"}.number(0): other.String(), keys{"p"}.floor(): founded.String()}}}
		o, err := Open(t.Context(), Config{Store: s, Prefix: "p", Last: 1})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(thirds * o.Hold / 3)
		synctest.Wait()
		if s.reads != 3 || s.writes < thirds || s.writes > thirds*8/7+1 {
			t.Errorf("%d reads and %d writes in %v", s.reads, s.writes, thirds*o.Hold/3)
		}
		t.Logf("1000 nodes write %.2f times a second", float64(s.writes)*1000/(thirds*o.Hold/3).Seconds())
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
