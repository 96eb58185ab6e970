package client

import (
	"errors"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/idserver"
)

// Every result of a call to an id server has an error here, and no other word has one.
func TestRefusals(t *testing.T) {
	ours := map[error]error{idserver.ErrBadArgument: ErrBadArgument, idserver.ErrBusy: ErrBusy}
	for _, err := range []error{flake.ErrClockBackwards, flake.ErrTimestampNotSaved, flake.ErrClosed} {
		ours[err] = err
	}
	calls := 0
	for _, result := range idserver.Results {
		switch result.Err {
		case nil, idserver.ErrNotRegistered, idserver.ErrStopping: // a call is not refused with these
			continue
		}
		calls++
		if got := refusals[result.Reason]; got == nil || !errors.Is(got, ours[result.Err]) {
			t.Errorf("%s: %v, want %v", result.Reason, got, ours[result.Err])
		}
	}
	if len(refusals) != calls {
		t.Errorf("%d words, want %d", len(refusals), calls)
	}
}
