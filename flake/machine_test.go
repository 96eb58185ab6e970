package flake

import "testing"

// Any difference in what identifies a machine counts, and nothing else does.
func TestIdentify(t *testing.T) {
	const id, cards = "0123456789abcdef0123456789abcdef\n", "eth0 3c:ec:ef:00:00:01 up 0 device\neth1 3c:ec:ef:00:00:02 down 0 device\n"
	of := func(id, cards, host string) string {
		all, sys := machine(cards)
		return identify([]byte(id), host, all, sys)
	}
	first := of(id, cards, "a")
	for what, same := range map[string]string{
		"other virtual cards": of(id, cards+"docker0 02:42:00:00:00:01 up 3 none\n", "a"),
		"another order":       of(id, "eth7 3c:ec:ef:00:00:02 up 0 device\neth8 3c:ec:ef:00:00:01 up 0 device\n", "a"),
	} {
		if same != first {
			t.Errorf("%s: %s, want %s", what, same, first)
		}
	}
	seen := map[string]string{first: "first"}
	for what, other := range map[string]string{
		"another machine-id":    of("1"+id[1:], cards, "a"),
		"no machine-id":         of("", cards, "a"),
		"another card":          of(id, "eth0 3c:ec:ef:00:00:03 up 0 device\neth1 3c:ec:ef:00:00:02 down 0 device\n", "a"),
		"a card more":           of(id, cards+"eth2 3c:ec:ef:00:00:03 up 0 device\n", "a"),
		"another host name":     of(id, cards, "b"),
		"nothing but lo":        of(id, "lo - up 0 none\n", "a"),
		"a container":           of(id, "lo - up 0 none\neth0 02:42:ac:11:00:02 up 3 none\n", "a"),
		"another container":     of(id, "lo - up 0 none\neth0 02:42:ac:11:00:03 up 3 none\n", "a"),
		"a host of another end": of(id, cards, "a\" \""),
	} {
		if before, ok := seen[other]; ok {
			t.Errorf("%s: the same as %s", what, before)
		}
		seen[other] = what
	}
}
