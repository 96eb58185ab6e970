package flake

import (
	"net"
	"strings"
	"testing"
)

func TestParseWorker(t *testing.T) {
	for text, want := range map[string]Worker{
		"02:00:00:00:00:01": 0x020000000001,
		"FF-ff-FF-ff-FF-fe": 0xfffffffffffe,
		"00:00:00:00:00:00": 0,
	} {
		if got, err := ParseWorker(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "02:00:00:00:00", "02:00:00:00:00:01:02:03", "0200.0000.0001", "020000000001", "02:00-00:00-00:01", "02:00:00:00:00:0g", strings.Repeat("0", 1000)} {
		if got, err := ParseWorker(text); err == nil || !strings.Contains(err.Error(), "worker_id") || len(err.Error()) > 250 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzParseWorker(f *testing.F) {
	f.Add("02:00:00:00:00:01")
	f.Add("02-00-00-00-00-0a")
	f.Fuzz(func(t *testing.T, text string) {
		if w, err := ParseWorker(text); err == nil && w.String() != strings.ToLower(strings.ReplaceAll(text, "-", ":")) {
			t.Errorf("%q comes back as %v", text, w)
		}
	})
}

func TestRandomWorker(t *testing.T) {
	seen, ones, zeros := map[Worker]bool{}, Worker(0), Worker(0)
	for range 100 {
		w := RandomWorker()
		ones, zeros = ones|w, zeros|^w&MaxWorker
		if w > MaxWorker || w&multicast == 0 || seen[w] {
			t.Fatal(w)
		}
		if mac, err := net.ParseMAC(w.String()); err != nil || mac[0]&1 == 0 {
			t.Fatalf("%v is no multicast address", w)
		}
		seen[w] = true
	}
	if ones != MaxWorker || zeros != MaxWorker&^multicast {
		t.Errorf("bits that are never set, or always: %v, %v", MaxWorker&^ones, MaxWorker&^multicast&^zeros)
	}
}

func TestPickInterface(t *testing.T) {
	all := []net.Interface{
		{Name: "lo"},
		{Name: "null0", HardwareAddr: net.HardwareAddr{0, 0, 0, 0, 0, 0}},
		{Name: "ib0", HardwareAddr: net.HardwareAddr(strings.Repeat("\x80", 20))},
		{Name: "eth0", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}},
		{Name: "eth1", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 2}},
	}
	for name, want := range map[string]Worker{"": 0x020000000001, "eth0": 0x020000000001, "eth1": 0x020000000002} {
		w, from, err := pickInterface(name, all)
		if w != want || err != nil || name != "" && from != name || name == "" && from != "eth0" {
			t.Errorf("interface %q: %v of %q, %v", name, w, from, err)
		}
	}
	for name, what := range map[string]string{
		"lo": "has no MAC address", "null0": "has no MAC address", "ib0": "has no MAC address", "eth7": "there is no interface",
	} {
		_, _, err := pickInterface(name, all)
		if err == nil {
			t.Fatalf("interface %q is taken", name)
		}
		for _, word := range []string{name, what, "lo (no MAC)", "eth1 (02:00:00:00:00:02)", "worker_id"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v does not name %q", err, word)
			}
		}
	}
	if _, _, err := pickInterface("", all[:3]); err == nil || !strings.Contains(err.Error(), "no interface has a MAC address") || !strings.Contains(err.Error(), "worker_id") {
		t.Errorf("no interface: %v", err)
	}
	if _, _, err := pickInterface("", nil); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("no interface: %v", err)
	}
	if _, _, err := InterfaceWorker("no such"); err == nil || !strings.Contains(err.Error(), `there is no interface "no such"`) {
		t.Errorf("of this machine: %v", err)
	}
}
