package durable

import (
	"fmt"

	"github.com/flake-go/flake/flake/internal/mark"
)

// RaiseMark raises the nameless mark in the file at path to at least milli and returns it.
// Nothing else in the file changes. It fails as [OpenMarks] does, or if the file cannot be
// written.
func RaiseMark(path string, milli uint64) (uint64, error) {
	file, c, err := mark.Open(mark.OS{}, path)
	if err != nil {
		return 0, fmt.Errorf("flake: %w", err)
	}
	defer file.Close()
	own := c.Marks[""]
	if own.Milli >= milli {
		return own.Milli, nil
	}
	own.Milli, own.Latest = milli, max(own.Latest, milli)
	if c.Marks == nil {
		c.Marks = map[string]mark.Mark{}
	}
	c.Marks[""] = own
	if err := file.Save(c); err != nil {
		return 0, fmt.Errorf("flake: %w; "+
			"free the disk or make the file and its directory writable, or set another timestamp_path", err)
	}
	return milli, nil
}
