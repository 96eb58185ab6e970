package flake

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// local is the bit of the first byte of a MAC that no manufacturer has given out.
const local Worker = 1 << 41

// Card is a network interface with a MAC address.
type Card struct {
	Name   string
	Worker Worker // the MAC

	// Doubts are why another machine may have the MAC as well, or this one another
	// after its next boot: "is down", "is virtual". A network card that is up and has
	// its manufacturer's address has none. A copy of a virtual machine may have the
	// MAC nonetheless.
	Doubts []string
}

// NetworkCard returns the network interface of a name. With an empty name that is the
// first without doubts, and if there is none the first of all, which
// [InterfaceWorker] takes. The error lists the interfaces there are.
func NetworkCard(name string) (Card, error) {
	all, err := interfaces()
	if err != nil {
		return Card{}, err
	}
	return pickCard(name, all, os.DirFS("/sys/class/net"))
}

func pickCard(name string, all []net.Interface, sys fs.FS) (best Card, err error) {
	_, first, err := pickInterface(name, all)
	for _, i := range all {
		w := workerOf(i.HardwareAddr)
		if err != nil || name != "" && i.Name != name || len(i.HardwareAddr) != 6 || w == 0 {
			continue
		}
		if d := doubts(i, sys); i.Name == first || len(d) == 0 && len(best.Doubts) > 0 {
			best = Card{i.Name, w, d}
		}
	}
	return best, err
}

// doubts looks at an interface, and at what Linux says of it in sys.
func doubts(i net.Interface, sys fs.FS) (all []string) {
	if i.Flags&net.FlagUp == 0 {
		all = append(all, "is down")
	}
	if workerOf(i.HardwareAddr)&local != 0 {
		all = append(all, "has a locally administered MAC")
	}
	// That of another network namespace may be mounted there.
	if address := attribute(sys, i.Name, "address"); address != i.HardwareAddr.String() {
		return all
	}
	if assigned := attribute(sys, i.Name, "addr_assign_type"); assigned != "" && assigned != "0" {
		all = append(all, fmt.Sprintf("has a MAC that is not its own (addr_assign_type %s)", assigned))
	}
	if virtual(i, sys) {
		all = append(all, "is virtual")
	}
	return all
}

// virtual tells whether an interface has no device behind it.
func virtual(i net.Interface, sys fs.FS) bool {
	_, err := fs.Stat(sys, i.Name+"/device")
	return err != nil
}

func attribute(sys fs.FS, name, attribute string) string {
	text, _ := fs.ReadFile(sys, name+"/"+attribute)
	return strings.TrimSpace(string(text))
}
