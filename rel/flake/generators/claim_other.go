//go:build !linux

package generators

import (
	"log/slog"

	"github.com/flake-go/flake/flake/formats"
)

// claim does nothing.
func claim(formats.Place, bool, *slog.Logger) (release func() error, err error) {
	return func() error { return nil }, nil
}
