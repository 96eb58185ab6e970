package flake

import (
	"cmp"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
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
	for _, text := range []string{"", "1", "02:00:00:00:00", "02:00:00:00:00:01:02:03", "0200.0000.0001",
		"020000000001", "02:00-00:00-00:01", "02:00:00:00:00:0g", strings.Repeat("0", 1000)} {
		if got, err := ParseWorker(text); err == nil || !strings.Contains(err.Error(), "worker_id") ||
			len(err.Error()) > 250 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzParseWorker(f *testing.F) {
	f.Add("02:00:00:00:00:01")
	f.Add("02-00-00-00-00-0a")
	f.Fuzz(func(t *testing.T, text string) {
		if w, err := ParseWorker(text); err == nil && w.String() != strings.ToLower(strings.ReplaceAll(text, "-",
			":")) {
			t.Errorf("%q round-trips to %v", text, w)
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
			t.Fatalf("%v is not a multicast address", w)
		}
		seen[w] = true
	}
	if ones != MaxWorker || zeros != MaxWorker&^multicast {
		t.Errorf("bits that are never set: %v, always set: %v", MaxWorker&^ones, MaxWorker&^multicast&^zeros)
	}
}

func TestNumberWorker(t *testing.T) {
	for number, want := range map[uint64]Worker{
		0: 0x010000000000, 0xabcd: 0x01000000abcd, 0xffff: 0x01000000ffff, 0x10000: 0x010000000000,
	} {
		if got := NumberWorker(number); got != want {
			t.Errorf("%#x: %v, want %v", number, got, want)
		}
	}
}

func TestWithMAC(t *testing.T) {
	all := []net.Interface{
		{Name: "lo"},
		{Name: "null0", HardwareAddr: net.HardwareAddr{0, 0, 0, 0, 0, 0}},
		{Name: "ib0", HardwareAddr: net.HardwareAddr(strings.Repeat("\x80", 20))},
		{Name: "eth0", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}},
		{Name: "eth1", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 2}},
	}
	for name, want := range map[string]Worker{"": 0x020000000001, "eth0": 0x020000000001, "eth1": 0x020000000002} {
		some, err := withMAC(name, all)
		if err != nil {
			t.Fatal(err)
		}
		first := some[0]
		if w := workerOf(first.HardwareAddr); w != want || first.Name != cmp.Or(name, "eth0") {
			t.Errorf("interface %q: %v of %q", name, w, first.Name)
		}
	}
	for name, what := range map[string]string{
		"lo": "has no MAC address", "null0": "has no MAC address", "ib0": "has no MAC address",
		"eth7": "there is no interface",
	} {
		_, err := withMAC(name, all)
		if err == nil {
			t.Fatalf("interface %q is accepted", name)
		}
		for _, word := range []string{name, what, "lo (no MAC)", "eth1 (02:00:00:00:00:02)", "worker_id"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v does not name %q", err, word)
			}
		}
	}
	if _, err := withMAC("", all[:3]); err == nil ||
		!strings.Contains(err.Error(), "no interface has a MAC address") ||
		!strings.Contains(err.Error(), "worker_id") {
		t.Errorf("no interface: %v", err)
	}
	if _, err := withMAC("", nil); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("no interface: %v", err)
	}
	if _, _, err := InterfaceWorker("no such"); err == nil ||
		!strings.Contains(err.Error(), `there is no interface "no such"`) {
		t.Errorf("on this machine: %v", err)
	}
	here, err := interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if some, err := withMAC("", here); err == nil { // this machine has a card
		if w, from, err := InterfaceWorker(""); w != workerOf(some[0].HardwareAddr) || from != some[0].Name || err != nil {
			t.Errorf("on this machine: %v of %q, %v; want %v", w, from, err, some[0])
		}
	}
}

// machine returns the interfaces that the lines describe, and their sysfs.
func machine(lines string) (all []net.Interface, sys fstest.MapFS) {
	sys = fstest.MapFS{}
	for line := range strings.Lines(lines) {
		f := strings.Fields(line) // name, MAC, up or down, addr_assign_type, device or none
		i := net.Interface{Name: f[0]}
		if f[2] == "up" {
			i.Flags = net.FlagUp
		}
		if f[1] != "-" {
			i.HardwareAddr, _ = net.ParseMAC(f[1])
		}
		all = append(all, i)
		sys[f[0]+"/address"] = &fstest.MapFile{Data: []byte(f[1] + "\n")}
		sys[f[0]+"/addr_assign_type"] = &fstest.MapFile{Data: []byte(f[3] + "\n")}
		if f[4] == "device" {
			sys[f[0]+"/device"] = &fstest.MapFile{}
		}
	}
	return all, sys
}

func TestNetworkCard(t *testing.T) {
	const unowned = "has a MAC that is not its own (addr_assign_type "
	for _, tt := range []struct {
		about, name, machine string
		want                 string
		doubts               []string
	}{
		{"the first card that is up and has a permanent MAC", "", `lo - up 0 none
			ifb0 de:e6:a1:f1:0a:b0 down 1 none
			eth0 3c:ec:ef:00:00:01 down 0 device
			docker0 02:42:00:00:00:01 up 3 none
			eth1 3c:ec:ef:00:00:02 up 0 device
			eth2 3c:ec:ef:00:00:03 up 0 device`, "eth1", nil},
		{"all are doubtful, so the first: eth0 may have one MAC in all virtual machines", "",
			`ifb0 de:e6:a1:f1:0a:b0 down 1 none
			eth0 02:fc:00:00:00:01 up 0 device
			eth1 3c:ec:ef:00:00:01 down 0 device`, "ifb0",
			[]string{"is down", "has a locally administered MAC", unowned + "1)", "is virtual"}},
		{"a cloud's card", "", `eth0 02:fc:00:00:00:01 up 0 device
			docker0 02:42:00:00:00:01 up 3 none`, "eth0", []string{"has a locally administered MAC"}},
		{"a container's card", "", `lo - up 0 none
			eth0 02:42:ac:11:00:02 up 3 none`, "eth0", []string{"has a locally administered MAC", unowned + "3)", "is virtual"}},
		{"the first of two with the same doubts", "", `va 2e:00:00:00:00:01 up 1 none
			vb 2e:00:00:00:00:02 up 1 none`, "va", []string{"has a locally administered MAC", unowned + "1)", "is virtual"}},
		{"one by name", "ifb0", `eth0 3c:ec:ef:00:00:01 up 0 device
			ifb0 de:e6:a1:f1:0a:b0 down 1 none`, "ifb0",
			[]string{"is down", "has a locally administered MAC", unowned + "1)", "is virtual"}},
	} {
		all, sys := machine(tt.machine)
		card, err := pickCard(tt.name, all, sys)
		if err != nil || card.Name != tt.want || !slices.Equal(card.Doubts, tt.doubts) {
			t.Errorf("%s: %+v, %v", tt.about, card, err)
		}
		if some, err := withMAC(card.Name, all); err != nil || workerOf(some[0].HardwareAddr) != card.Worker {
			t.Errorf("%s: worker %v, but %v is %v, %v", tt.about, card.Worker, card.Name, some, err)
		}
	}
}

// A sysfs entry with the same name but another MAC is from another network namespace.
func TestNetworkCardOfAnotherNamespace(t *testing.T) {
	all, _ := machine("eth0 3c:ec:ef:00:00:01 up 0 device")
	_, sys := machine("eth0 de:e6:a1:f1:0a:b0 up 3 none")
	for _, sys := range []fstest.MapFS{sys, {}} {
		if card, err := pickCard("", all, sys); err != nil || card.Name != "eth0" || len(card.Doubts) > 0 {
			t.Errorf("%+v, %v", card, err)
		}
	}
}

// Without an addr_assign_type there is no reason to doubt the MAC.
func TestNetworkCardWithoutAssignType(t *testing.T) {
	all, sys := machine("eth0 3c:ec:ef:00:00:01 up 0 device")
	delete(sys, "eth0/addr_assign_type")
	if card, err := pickCard("", all, sys); err != nil || card.Name != "eth0" || len(card.Doubts) > 0 {
		t.Errorf("%+v, %v", card, err)
	}
}

func TestNoNetworkCard(t *testing.T) {
	all, sys := machine("lo - up 0 none")
	for name, want := range map[string]string{"": "no interface has a MAC address", "lo": "has no MAC address",
		"eth7": "there is no interface"} {
		if card, err := pickCard(name, all, sys); err == nil || !strings.Contains(err.Error(), want) ||
			card.Name != "" {
			t.Errorf("%q: %+v, %v", name, card, err)
		}
	}
	if _, err := NetworkCard("no such"); err == nil || !strings.Contains(err.Error(),
		`there is no interface "no such"`) {
		t.Errorf("on this machine: %v", err)
	}
}

// The result changes with anything that identifies the machine, and with nothing else.
func TestIdentify(t *testing.T) {
	const id, cards = "0123456789abcdef0123456789abcdef\n",
		"eth0 3c:ec:ef:00:00:01 up 0 device\neth1 3c:ec:ef:00:00:02 down 0 device\n"
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
		"another machine-id": of("1"+id[1:], cards, "a"),
		"no machine-id":      of("", cards, "a"),
		"another card": of(id, "eth0 3c:ec:ef:00:00:03 up 0 device\neth1 3c:ec:ef:00:00:02 down 0 device\n",
			"a"),
		"one more card":           of(id, cards+"eth2 3c:ec:ef:00:00:03 up 0 device\n", "a"),
		"another host name":       of(id, cards, "b"),
		"nothing but lo":          of(id, "lo - up 0 none\n", "a"),
		"a container":             of(id, "lo - up 0 none\neth0 02:42:ac:11:00:02 up 3 none\n", "a"),
		"another container":       of(id, "lo - up 0 none\neth0 02:42:ac:11:00:03 up 3 none\n", "a"),
		"a host name with quotes": of(id, cards, "a\" \""),
	} {
		if before, ok := seen[other]; ok {
			t.Errorf("%s has the same result as %s", what, before)
		}
		seen[other] = what
	}
	if here, err := thisMachine(); len(here) != len(first) || err != nil {
		t.Errorf("this machine: %q, %v", here, err)
	}
}

func TestMachineID(t *testing.T) {
	own, bus := &fstest.MapFile{Data: []byte("own\n")}, &fstest.MapFile{Data: []byte("bus\n")}
	for _, tt := range []struct {
		root fstest.MapFS
		want string
	}{
		{fstest.MapFS{"etc/machine-id": own, "var/lib/dbus/machine-id": bus}, "own\n"},
		{fstest.MapFS{"etc/machine-id": own}, "own\n"},
		{fstest.MapFS{"var/lib/dbus/machine-id": bus}, "bus\n"},
		{fstest.MapFS{}, ""},
	} {
		if got := string(machineID(tt.root)); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.root, got, tt.want)
		}
	}
}

// A machine keeps its worker id. With a file copied from another machine it makes a new one.
func TestKeptWorker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timestamp")
	kept := func(m *Marks, name string, wantMade bool) Worker {
		t.Helper()
		w, made, err := KeptWorker(m, name)
		if w > MaxWorker || w&multicast == 0 || made != wantMade || err != nil {
			t.Fatalf("%q: %v, made %v, %v; want made %v", name, w, made, err, wantMade)
		}
		return w
	}
	open := func() *Marks {
		t.Helper()
		m, err := OpenMarks(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	m := open()
	first := kept(m, "", true)
	copied, _, err := m.StoredWorker("copied", "another machine", uint64(MaxWorker), func() uint64 { return 7 })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), "", first, Options{Marks: m}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if w, made, err := KeptWorker(m, ""); made || err == nil {
		t.Errorf("KeptWorker of a closed file: %v, made %v, %v", w, made, err)
	}
	m = open()
	if again := kept(m, "", false); again != first {
		t.Errorf("the worker id is %v, want %v as before", again, first)
	}
	if own := kept(m, "copied", true); own == Worker(copied) || own == first {
		t.Errorf("the new worker id is %v, want another than %v and %v", own, Worker(copied), first)
	}
}
