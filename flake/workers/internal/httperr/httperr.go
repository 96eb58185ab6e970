// Package httperr words the errors of net/http for stores that use it.
package httperr

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/flake-go/flake/flake/workers"
)

// Explain rewords an error of net/http to name the cause. connected says whether there was a
// connection.
func Explain(err error, connected bool) error {
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fmt.Errorf("%w: %w", workers.ErrRefused, err)
	case errors.Is(err, context.DeadlineExceeded) && connected:
		return errors.New("no answer in time")
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no connection in time")
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("it closed the connection: %w", err)
	}
	return err
}
