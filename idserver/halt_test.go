package idserver

import (
	"errors"
	"testing"

	"github.com/flake-go/flake/flake"
)

// While there is a reason there are no ids, however they are asked for.
func TestHalt(t *testing.T) {
	for word, why := range map[string]error{
		"peers_not_asked": ErrPeersNotAsked, "worker_taken": ErrWorkerTaken, "clock_differs": ErrClockDiffers,
	} {
		s := serverOf(t, &stock{perTick: 10, left: 10})
		h := &Halt{Source: s.IDs}
		s.IDs = h
		h.Stop(errors.Join(why))
		_, one := s.Get(t.Context())
		_, many := s.GetMany(t.Context(), 2, Meta{}, nil)
		_, lease := s.Lease(t.Context(), 2, Meta{}, nil)
		for what, err := range map[string]error{"get": one, "get_many": many, "lease": lease, "ready": h.Ready(), "why": h.Why()} {
			if !errors.Is(err, why) || Reason(err) != word {
				t.Errorf("%s: %v, %s", what, err, Reason(err))
			}
		}
		h.Stop(nil)
		_, err := s.Get(t.Context())
		if err := errors.Join(err, h.Ready(), h.Why()); err != nil {
			t.Error(err)
		}
	}
	h := &Halt{Source: &stock{perTick: 1, err: flake.ErrClosed}}
	if _, err := h.Reserve(t.Context(), 1, 0); !errors.Is(err, flake.ErrClosed) {
		t.Errorf("the source's own error: %v", err)
	}
}
