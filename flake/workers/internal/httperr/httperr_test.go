package httperr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
)

func TestExplain(t *testing.T) {
	other := errors.New("other")
	for _, tt := range []struct {
		err  error
		sent bool
		want string
	}{
		{fmt.Errorf("post: %w", context.DeadlineExceeded), true, "no answer in time"},
		{fmt.Errorf("post: %w", context.DeadlineExceeded), false, "no connection in time"},
		{io.EOF, true, "it closed the connection: EOF"},
		{syscall.ECONNRESET, false, "it closed the connection: connection reset by peer"},
		{other, true, "other"},
	} {
		if got := Explain(tt.err, tt.sent); got.Error() != tt.want {
			t.Errorf("%v, sent %v: %v", tt.err, tt.sent, got)
		}
	}
}
