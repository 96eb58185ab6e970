package durable

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/internal/mark"
)

// RaiseMark raises the mark, never lowers it, and leaves the rest of the file unchanged.
func TestRaiseMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	raise := func(to, want uint64) {
		t.Helper()
		if got, err := RaiseMark(path, to); got != want || err != nil {
			t.Errorf("to %d: %d, %v, want %d", to, got, err, want)
		}
	}
	raise(1000, 1000)
	raise(500, 1000)
	raise(2000, 2000)
	before, err := os.ReadFile(path)
	raise(2000, 2000)
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) || err != nil {
		t.Errorf("raising the mark to its own value changed %q to %q, %v", before, after, err)
	}
	file, c, err := mark.Open(mark.OS{}, path)
	if err != nil || len(c.Marks) != 1 {
		t.Fatal(c, err)
	}
	c.Marks[""] = mark.Mark{Milli: 3000, Latest: 6000, Words: []uint64{7}}
	c.Marks["orders"] = markAt(9000)
	if err := file.Save(c); err != nil {
		t.Fatal(err)
	}
	if _, err := RaiseMark(path, 4000); err == nil || !strings.Contains(err.Error(), "another node is running with it") {
		t.Errorf("on a locked file: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	raise(4000, 4000)
	file, c, err = mark.Open(mark.OS{}, path)
	if own := c.Marks[""]; err != nil || own.Milli != 4000 || own.Latest != 6000 || len(own.Words) != 1 ||
		c.Marks["orders"].Milli != 9000 {
		t.Error(c, err)
	}
	file.Close()
	if _, err := RaiseMark(path, mark.Max+1); err == nil {
		t.Error("a mark above the highest is saved")
	}
	if err := os.WriteFile(path, []byte("foreign"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RaiseMark(path, 5000); err == nil || !strings.Contains(err.Error(), "it is not a mark") {
		t.Errorf("on a foreign file: %v", err)
	}
}
