package node

import (
	"fmt"
	"testing"
)

// A free name is given again, to its host, with another creation.
func TestNames(t *testing.T) {
	n := newNames()
	none := func(string) bool { return false }
	first, creation := n.assign("a", none)
	if second, _ := n.assign("a", none); second == first {
		t.Errorf("%s is given twice", first)
	}
	n.takeBack(first)
	n.takeBack(first)
	n.takeBack("nobody@a")
	if other, _ := n.assign("b", none); other == first {
		t.Errorf("%s is given to another host", first)
	}
	if third, _ := n.assign("a", func(node string) bool { return node == first }); third == first {
		t.Errorf("%s is given though it is taken", first)
	}
	if again, c := n.assign("a", none); again != first || c == creation || c == 0 {
		t.Errorf("%s, creation %d, want %s and not %d", again, c, first, creation)
	}
	for i := range 2 * keptNames {
		node, _ := n.assign(fmt.Sprint(i), none)
		n.takeBack(node)
	}
	if len(n.free) != keptNames {
		t.Errorf("%d are kept, want %d", len(n.free), keptNames)
	}
}
