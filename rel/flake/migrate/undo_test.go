package migrate

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
)

// A failed takeover removes the files that it created, unless another node already uses them.
func TestUndo(t *testing.T) {
	for _, tt := range []struct{ before, locked, stay bool }{{false, false, false}, {true, false, true},
		{false, true, true}} {
		path := filepath.Join(t.TempDir(), "timestamp")
		raise := func() {
			if _, err := flake.RaiseMark(path, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if tt.before {
			raise()
		}
		h := Handover{mark: path}
		if err := h.checkMark(); err != nil {
			t.Fatal(err)
		}
		raise()
		if tt.locked {
			marks, err := flake.OpenMarks(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer marks.Close()
		}
		if err := h.undo(io.Discard); err != nil {
			t.Error(err)
		}
		for _, path := range []string{path, path + ".lock"} {
			if _, err := os.Stat(path); (err == nil) != tt.stay {
				t.Errorf("%+v: %s: %v", tt, filepath.Base(path), err)
			}
		}
	}
}
