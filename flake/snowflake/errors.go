package snowflake

import (
	"fmt"

	"github.com/flake-go/flake/flake"
)

// ErrSequence: the sequences of the millisecond are used up, and the caller did
// not want to wait. The words are flake-idgen's.
const ErrSequence = words("Sequence exceeded its maximum value. Provide callback function to handle sequence overflow")

type words string

func (w words) Error() string { return string(w) }

// clockError is in how many ms there are ids again, in the words of flake-idgen.
type clockError uint64

func (e clockError) Error() string {
	return fmt.Sprintf("Clock moved backwards. Refusing to generate id for %d milliseconds", uint64(e))
}

func (clockError) Unwrap() error { return flake.ErrClockBackwards }
