package flake

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/flake-go/flake/flake/internal/digits"
)

// Worker identifies a generator: 48 bits, usually a MAC address. The upper 16 bits
// are 0.
type Worker uint64

// MaxWorker is the highest worker id.
const MaxWorker Worker = 1<<48 - 1

// multicast is the lowest bit of the first byte. It is never set in a network card's address.
const multicast Worker = 1 << 40

// String returns the worker written as a MAC address: 02:00:00:00:00:01.
func (w Worker) String() string {
	var bytes [8]byte
	binary.BigEndian.PutUint64(bytes[:], uint64(w))
	return net.HardwareAddr(bytes[2:]).String()
}

// ParseWorker parses six bytes in hexadecimal, separated by colons or hyphens:
// 02:00:00:00:00:01.
func ParseWorker(text string) (Worker, error) {
	mac, err := net.ParseMAC(text)
	if err != nil || len(text) != len("02:00:00:00:00:01") {
		return 0, fmt.Errorf("flake: worker_id %s is not six bytes such as \"02:00:00:00:00:01\"", digits.Quote(text))
	}
	return workerOf(mac), nil
}

// RandomWorker returns a random worker id: 47 random bits and the multicast bit, so that the
// id never equals the MAC of a network card (RFC 9562 section 6.10).
func RandomWorker() Worker {
	var bytes [6]byte
	rand.Read(bytes[:]) // never fails
	return workerOf(bytes[:]) | multicast
}

// NumberWorker returns the worker id for a number below 2^16 that is unique in a fleet. Like
// those of [RandomWorker], it never equals the MAC of a network card.
func NumberWorker(number uint64) Worker { return Worker(number&0xffff) | multicast }

// InterfaceWorker returns the MAC address of a network interface as a worker id, and the
// interface's name. An empty name means the interface that boundary/flake would choose: the
// first whose MAC is not all zeros. The error lists all interfaces.
func InterfaceWorker(name string) (worker Worker, from string, err error) {
	all, err := interfaces()
	if err != nil {
		return 0, "", err
	}
	some, err := withMAC(name, all)
	if err != nil {
		return 0, "", err
	}
	return workerOf(some[0].HardwareAddr), some[0].Name, nil
}

func interfaces() ([]net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		err = fmt.Errorf("flake: listing network interfaces: %w; set worker_id instead", err)
	}
	return all, err
}

// withMAC returns the interfaces that have a MAC address and, if name is not empty, that name.
// It fails if there are none.
func withMAC(name string, all []net.Interface) (some []net.Interface, err error) {
	what := "no interface has a MAC address"
	if name != "" {
		what = "there is no interface " + digits.Quote(name)
	}
	var there []string
	for _, i := range all {
		there = append(there, fmt.Sprintf("%s (%s)", i.Name, cmp.Or(i.HardwareAddr.String(), "no MAC")))
		switch {
		case name != "" && i.Name != name:
		case len(i.HardwareAddr) == 6 && workerOf(i.HardwareAddr) != 0:
			some = append(some, i)
		case name != "":
			what = fmt.Sprintf("interface %s has no MAC address", digits.Quote(name))
		}
	}
	if len(some) == 0 {
		err = fmt.Errorf("flake: %s; interfaces: %s; name another, or set worker_id, such as \"02:00:00:00:00:01\"",
			what, cmp.Or(strings.Join(there, ", "), "none"))
	}
	return some, err
}

func workerOf(bytes []byte) (w Worker) {
	for _, o := range bytes {
		w = w<<8 | Worker(o)
	}
	return w
}

// local is the bit of the first byte that is set in locally administered MACs.
const local Worker = 1 << 41

// Card is a network interface with a MAC address.
type Card struct {
	Name   string
	Worker Worker // the MAC

	// Doubts are the reasons why another machine may have the same MAC, or why this machine may
	// have a different MAC after its next boot: "is down", "is virtual". Doubts is empty for a
	// network card that is up and has its manufacturer's address. Even then, a copy of a
	// virtual machine may have the same MAC.
	Doubts []string
}

// NetworkCard returns the network interface with the given name. An empty name means the first
// interface without doubts or, if every interface has doubts, the one that [InterfaceWorker]
// chooses. The error lists all interfaces.
func NetworkCard(name string) (Card, error) {
	all, err := interfaces()
	if err != nil {
		return Card{}, err
	}
	return pickCard(name, all, os.DirFS("/sys/class/net"))
}

func pickCard(name string, all []net.Interface, sys fs.FS) (best Card, err error) {
	some, err := withMAC(name, all)
	for n, i := range some {
		if d := doubts(i, sys); n == 0 || len(d) == 0 && len(best.Doubts) > 0 {
			best = Card{i.Name, workerOf(i.HardwareAddr), d}
		}
	}
	return best, err
}

// doubts derives the doubts about an interface from its flags and Linux's sysfs.
func doubts(i net.Interface, sys fs.FS) (all []string) {
	if i.Flags&net.FlagUp == 0 {
		all = append(all, "is down")
	}
	if workerOf(i.HardwareAddr)&local != 0 {
		all = append(all, "has a locally administered MAC")
	}
	// The sysfs of another network namespace may be mounted.
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

// virtual reports whether an interface has no hardware device.
func virtual(i net.Interface, sys fs.FS) bool {
	_, err := fs.Stat(sys, i.Name+"/device")
	return err != nil
}

func attribute(sys fs.FS, name, attribute string) string {
	text, _ := fs.ReadFile(sys, name+"/"+attribute)
	return strings.TrimSpace(string(text))
}

// KeptWorker returns the worker id stored in the file with the mark of the given name. If there
// is none, or if the file was copied from a machine with a different machine-id(5), network
// cards or host name, KeptWorker makes one as [RandomWorker] does. A new worker id is saved
// with the next mark, so open a generator with it.
func KeptWorker(m *Marks, name string) (w Worker, made bool, err error) {
	machine, err := thisMachine()
	if err != nil {
		return 0, false, err
	}
	n, kept, err := m.StoredWorker(name, machine, uint64(MaxWorker), func() uint64 { return uint64(RandomWorker()) })
	return Worker(n), !kept && err == nil, err
}

// thisMachine returns text that identifies this machine.
func thisMachine() (string, error) {
	all, err := interfaces()
	if err != nil {
		return "", err
	}
	host, _ := os.Hostname() // if it fails, the machine-id and the MACs suffice
	return identify(machineID(os.DirFS("/")), host, all, os.DirFS("/sys/class/net")), nil
}

// machineID returns the content of machine-id(5) or, on a system without it, of D-Bus's file.
func machineID(root fs.FS) []byte {
	id, err := fs.ReadFile(root, "etc/machine-id")
	if err != nil {
		id, _ = fs.ReadFile(root, "var/lib/dbus/machine-id")
	}
	return id
}

// identify returns a hash of the machine-id, the host name, and the MACs of the physical cards.
// If all cards are virtual, as in a container, it uses the MACs of all cards. The machine-id
// itself must not be published: see machine-id(5).
func identify(id []byte, host string, all []net.Interface, sys fs.FS) string {
	var macs, permanent []string
	for _, i := range all {
		macs = append(macs, i.HardwareAddr.String())
		if !virtual(i, sys) {
			permanent = append(permanent, i.HardwareAddr.String())
		}
	}
	if len(permanent) > 0 {
		macs = permanent
	}
	slices.Sort(macs)
	sum := hmac.New(sha256.New, bytes.TrimSpace(id))
	fmt.Fprintf(sum, "flake worker %q %q", host, macs)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
