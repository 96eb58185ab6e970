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

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timestamp")
	milli := uint64(1_700_000_000_000)
	clock := func() uint64 { return milli }
	var last ID
	for range 2 {
		d, err := Open(t.Context(), path, 1, Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		id := next(t, d)
		if id != Make(milli, 1, 0) || id.Compare(last) <= 0 {
			t.Errorf("%x after %x", id, last)
		}
		if at, err := d.LastSaved(); at.UnixMilli() != int64(milli) || err != nil || d.Mark() != at.Add(3*time.Second) {
			t.Errorf("saved at %v, %v, the mark at %v", at, err, d.Mark())
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if at, sequence := d.Last(); at != milli || sequence != 0 {
			t.Errorf("closed, the last id is %d:%d", at, sequence)
		}
		if at := d.Mark(); at.UnixMilli() != int64(milli) {
			t.Errorf("closed, the mark is at %v", at)
		}
		if err := d.Ready(); !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		last = id
		milli++
	}
}

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
