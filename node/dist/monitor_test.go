package dist

import (
	"math/rand/v2"
	"testing"
)

// Monitors behave like a map, whatever the sums of their references.
func TestMonitors(t *testing.T) {
	for name, collide := range map[string]bool{"sums differ": false, "one sum": true} {
		t.Run(name, func(t *testing.T) {
			var kept monitors
			kept.clear()
			if collide {
				kept.sum = func([]byte) uint64 { return 1 }
			}
			rng := rand.New(rand.NewPCG(1, 2))
			want := make(map[int]uint64)
			for step := range uint64(20_000) {
				i := rng.IntN(50)
				ref := []byte(refOf(i))
				process, there := want[i]
				m := kept.take(ref)
				if there != (m != nil) || there && (m.process != process || string(m.item()) != "flake" || string(m.by()) != string(theirs)) {
					t.Fatalf("step %d: took %+v, want one of process %d: %t", step, m, process, there)
				}
				delete(want, i)
				if m != nil {
					kept.spare(m)
				}
				if rng.IntN(3) > 0 {
					kept.add(step, ref, []byte("flake"), []byte(theirs))
					want[i] = step
				}
				if kept.n != len(want) {
					t.Fatalf("step %d: %d kept, want %d", step, kept.n, len(want))
				}
			}
			kept.each(func(m *monitor) {
				kept.spare(kept.take(m.ref()))
				want[-1]++
			})
			if all := len(want) - 1; want[-1] != uint64(all) || kept.n != 0 || len(kept.sums.all) != 0 {
				t.Errorf("%d gone through of %d, %d kept", want[-1], all, kept.n)
			}
		})
	}
}

// At most maxSpares removed monitors are kept for reuse, and no large ones.
func TestSpares(t *testing.T) {
	var kept monitors
	kept.spare(&monitor{terms: make([]byte, maxSpare+1)})
	for range maxSpares + 1 {
		kept.spare(&monitor{terms: make([]byte, maxSpare)})
	}
	n := 0
	for m := kept.spares; m != nil && n <= maxSpares; m = m.next {
		if n++; cap(m.terms) > maxSpare {
			t.Errorf("%d bytes are kept, want at most %d", cap(m.terms), maxSpare)
		}
	}
	if n != maxSpares {
		t.Errorf("%d are kept, want %d", n, maxSpares)
	}
}
