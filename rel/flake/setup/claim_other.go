//go:build !linux

package setup

import (
	"log/slog"

	"github.com/flake-go/flake/flake/formats"
)

// claim does nothing, because only Linux has the abstract sockets that claims are made of.
func claim(formats.Range, bool, *slog.Logger) (release func() error, err error) {
	return func() error { return nil }, nil
}
