package node

import (
	"fmt"
	"testing"
)

// A free name is given again, to its host, with another creation.
func TestNames(t *testing.T) {
	n := newNames()
	none := func(string) bool { return false }
	first, creation := n.give("a", none)
	if second, _ := n.give("a", none); second == first {
		t.Errorf("%s is given twice", first)
	}
	n.takeBack(first)
	n.takeBack(first)
	n.takeBack("nobody@a")
	if other, _ := n.give("b", none); other == first {
		t.Errorf("%s is given to another host", first)
	}
	if third, _ := n.give("a", func(node string) bool { return node == first }); third == first {
		t.Errorf("%s is given though it is taken", first)
	}
	if again, c := n.give("a", none); again != first || c == creation || c == 0 {
		t.Errorf("%s, creation %d, want %s and not %d", again, c, first, creation)
	}
	for i := range 2 * keptNames {
		node, _ := n.give(fmt.Sprint(i), none)
		n.takeBack(node)
	}
	if len(n.free) != keptNames {
		t.Errorf("%d are kept, want %d", len(n.free), keptNames)
	}
}
