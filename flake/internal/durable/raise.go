package durable

import (
	"fmt"

	"github.com/flake-go/flake/flake/internal/mark"
)

// RaiseMark makes the mark without a name in the file at path at least milli, and returns what it then is. It keeps
// what stands beside it and the marks of names. It fails as [OpenMarks] does, or if the file cannot be written.
func RaiseMark(path string, milli uint64) (uint64, error) {
	file, marks, err := mark.Open(mark.OS{}, path)
	if err != nil {
		return 0, fmt.Errorf("flake: %w", err)
	}
	defer file.Close()
	own := marks[""]
	if own.Milli >= milli {
		return own.Milli, nil
	}
	own.Milli = milli
	if marks == nil {
		marks = mark.Marks{}
	}
	marks[""] = own
	if err := file.Save(marks); err != nil {
		return 0, fmt.Errorf("flake: %w; free the disk or make the file and its folder writable, or set another timestamp_path", err)
	}
	return milli, nil
}
