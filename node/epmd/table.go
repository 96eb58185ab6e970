package epmd

import (
	"slices"
	"sync"
)

// table holds the registered nodes, latest first, as the real daemon lists them.
type table struct {
	mu       sync.Mutex
	nodes    []*Node
	creation uint32 // the last one given out
}

// add registers n and returns its creation, or false if the name is taken. Consecutive
// creations differ in every form in which they are sent.
func (t *table) add(n *Node) (creation uint32, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.find(n.Name) >= 0 {
		return 0, false
	}
	t.creation++
	if t.creation <= maxOldCreation {
		t.creation = maxOldCreation + 1 // 0 means none, and 1 to 3 look like an old node's
	}
	t.nodes = slices.Insert(t.nodes, 0, n)
	return t.creation, true
}

// maxOldCreation is the greatest creation of old nodes, whose pids have two bits for it.
const maxOldCreation = 3

// oldCreation is c for nodes of version 5, in 1..3.
func oldCreation(c uint32) uint32 { return c%maxOldCreation + 1 }

func (t *table) remove(n *Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes = slices.DeleteFunc(t.nodes, func(m *Node) bool { return m == n })
}

func (t *table) lookup(name string) (Node, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.find(name); i >= 0 {
		return *t.nodes[i], true
	}
	return Node{}, false
}

func (t *table) names() []NodeName {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]NodeName, len(t.nodes))
	for i, n := range t.nodes {
		names[i] = NodeName{n.Name, n.Port}
	}
	return names
}

func (t *table) find(name string) int {
	return slices.IndexFunc(t.nodes, func(n *Node) bool { return n.Name == name })
}
