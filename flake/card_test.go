package flake

import (
	"net"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// machine are interfaces, and what Linux says of them.
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
		{"a permanent one that is up, not the first", "", `lo - up 0 none
			ifb0 de:e6:a1:f1:0a:b0 down 1 none
			eth0 3c:ec:ef:00:00:01 down 0 device
			docker0 02:42:00:00:00:01 up 3 none
			eth1 3c:ec:ef:00:00:02 up 0 device
			eth2 3c:ec:ef:00:00:03 up 0 device`, "eth1", nil},
		{"none without doubts, so the first: all virtual machines may have that of eth0", "", `ifb0 de:e6:a1:f1:0a:b0 down 1 none
			eth0 02:fc:00:00:00:01 up 0 device
			eth1 3c:ec:ef:00:00:01 down 0 device`, "ifb0", []string{"is down", "has a locally administered MAC", unowned + "1)", "is virtual"}},
		{"that of a cloud", "", `eth0 02:fc:00:00:00:01 up 0 device
			docker0 02:42:00:00:00:01 up 3 none`, "eth0", []string{"has a locally administered MAC"}},
		{"that of a container", "", `lo - up 0 none
			eth0 02:42:ac:11:00:02 up 3 none`, "eth0", []string{"has a locally administered MAC", unowned + "3)", "is virtual"}},
		{"the first of those alike", "", `va 2e:00:00:00:00:01 up 1 none
			vb 2e:00:00:00:00:02 up 1 none`, "va", []string{"has a locally administered MAC", unowned + "1)", "is virtual"}},
		{"one by name", "ifb0", `eth0 3c:ec:ef:00:00:01 up 0 device
			ifb0 de:e6:a1:f1:0a:b0 down 1 none`, "ifb0", []string{"is down", "has a locally administered MAC", unowned + "1)", "is virtual"}},
	} {
		all, sys := machine(tt.machine)
		card, err := pickCard(tt.name, all, sys)
		if err != nil || card.Name != tt.want || !slices.Equal(card.Doubts, tt.doubts) {
			t.Errorf("%s: %+v, %v", tt.about, card, err)
		}
		if w, _, err := pickInterface(card.Name, all); w != card.Worker || err != nil {
			t.Errorf("%s: worker %v, but %v has %v, %v", tt.about, card.Worker, card.Name, w, err)
		}
	}
}

// What is told of an interface of the same name with another MAC is of another namespace.
func TestNetworkCardOfAnotherNamespace(t *testing.T) {
	all, _ := machine("eth0 3c:ec:ef:00:00:01 up 0 device")
	_, sys := machine("eth0 de:e6:a1:f1:0a:b0 up 3 none")
	for _, sys := range []fstest.MapFS{sys, {}} {
		if card, err := pickCard("", all, sys); err != nil || card.Name != "eth0" || len(card.Doubts) > 0 {
			t.Errorf("%+v, %v", card, err)
		}
	}
}

func TestNoNetworkCard(t *testing.T) {
	all, sys := machine("lo - up 0 none")
	for name, want := range map[string]string{"": "no interface has a MAC address", "lo": "has no MAC address", "eth7": "there is no interface"} {
		if card, err := pickCard(name, all, sys); err == nil || !strings.Contains(err.Error(), want) || card.Name != "" {
			t.Errorf("%q: %+v, %v", name, card, err)
		}
	}
	if _, err := NetworkCard("no such"); err == nil || !strings.Contains(err.Error(), `there is no interface "no such"`) {
		t.Errorf("of this machine: %v", err)
	}
}
