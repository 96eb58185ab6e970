package credentials

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A changed file is noticed even if its size and time are the same, but not before it has settled.
func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	when := time.Now().Add(-time.Hour)
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	w := Watched(path, "")
	for i, step := range []struct {
		text          string // empty: no file
		atOnce        bool
		changed, kept bool
		during        string // what the file contains after it was read, if that differs
	}{
		{text: "old"},
		{text: "new"}, {text: "new", changed: true, kept: true}, {text: "new"},
		{text: "ha"}, {text: "half"}, {text: "half-and-half"}, {text: "half-and-half", changed: true, kept: true},
		{text: "at once", atOnce: true, changed: true, kept: true}, {text: "at once"}, {text: "at once", atOnce: true},
		{text: "first"}, {text: "first", changed: true, during: "second"}, {text: "first"},
		{text: "first", changed: true, kept: true},
		{text: ""}, {text: "", changed: true, kept: true},
		{text: "back"}, {text: "first"}, {text: "first", changed: true, kept: true},
	} {
		if write(step.text); step.text == "" {
			os.Remove(path)
		}
		changed := w.Changed(step.atOnce, path, "")
		if changed != step.changed {
			t.Fatalf("step %d: changed: %t", i, changed)
		}
		if step.during != "" {
			write(step.during)
		}
		if changed && w.Kept(path, "") != step.kept {
			t.Errorf("step %d: kept: %t", i, !step.kept)
		}
	}
	write("first")
	w = Watched(path)
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if w.Changed(false, path); !w.Changed(false, path) {
		t.Error("the mode has changed")
	}
}
