package flake

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A disk that is gone shows before it leaves no ids.
func TestReadyWithoutADisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(t.Context(), filepath.Join(dir, "timestamp"), 1, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := errors.Join(d.Ready(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
		time.Sleep(1500 * time.Millisecond)
		next(t, d)
		if err := d.Ready(); !errors.Is(err, ErrTimestampNotSaved) {
			t.Error(err)
		}
	})
}

func TestOpenRefusesWhatIsNoMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timestamp")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if d, err := Open(t.Context(), path, 1, Options{}); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("%v, %v", d, err)
	}
	if d, err := Open(t.Context(), filepath.Join(path, "x"), 1, Options{}); err == nil {
		t.Errorf("%v, %v", d, err)
	}
	if d, err := Open(t.Context(), path+"x", MaxWorker+1, Options{}); err == nil {
		t.Errorf("%v, %v", d, err)
	}
}
