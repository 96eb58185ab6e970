package flake

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/flake-go/flake/flake/internal/digits"
)

// Worker tells the generators apart: 48 bits, a MAC address as a rule. The
// upper 16 bits are 0.
type Worker uint64

// MaxWorker is the highest worker id.
const MaxWorker Worker = 1<<48 - 1

// multicast is the lowest bit of the first byte. No network card's own
// address has it, so an id made with it can equal none.
const multicast Worker = 1 << 40

// String is the worker as a MAC address is written: 02:00:00:00:00:01.
func (w Worker) String() string {
	var bytes [8]byte
	binary.BigEndian.PutUint64(bytes[:], uint64(w))
	return net.HardwareAddr(bytes[2:]).String()
}

// ParseWorker reads six bytes in hexadecimal with colons or hyphens between:
// 02:00:00:00:00:01.
func ParseWorker(text string) (Worker, error) {
	mac, err := net.ParseMAC(text)
	if err != nil || len(text) != len("02:00:00:00:00:01") {
		return 0, fmt.Errorf("flake: worker_id %s is not six bytes such as \"02:00:00:00:00:01\"", digits.Quote(text))
	}
	return workerOf(mac), nil
}

// RandomWorker makes up a worker id: 47 random bits, and the multicast bit set
// so that it can never equal the MAC of a network card (RFC 9562 section 6.10).
func RandomWorker() Worker {
	var bytes [6]byte
	rand.Read(bytes[:]) // never fails
	return workerOf(bytes[:]) | multicast
}

// NumberWorker makes a worker id of a number below 2^16 that others of a fleet do not
// have. Like those of [RandomWorker] it can never equal the MAC of a network card.
func NumberWorker(number uint64) Worker { return Worker(number&0xffff) | multicast }

// InterfaceWorker takes the MAC address of a network interface as the worker
// id, and tells which. An empty name means the original's choice: the first
// interface with a MAC that is not all zeros. The error lists the interfaces
// there are.
func InterfaceWorker(name string) (worker Worker, from string, err error) {
	all, err := interfaces()
	if err != nil {
		return 0, "", err
	}
	return pickInterface(name, all)
}

func interfaces() ([]net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		err = fmt.Errorf("flake: listing network interfaces: %w; set worker_id instead", err)
	}
	return all, err
}

func pickInterface(name string, all []net.Interface) (Worker, string, error) {
	for _, i := range all {
		if name != "" && i.Name != name {
			continue
		}
		if len(i.HardwareAddr) == 6 && workerOf(i.HardwareAddr) != 0 {
			return workerOf(i.HardwareAddr), i.Name, nil
		}
		if name != "" {
			return 0, "", noInterface(fmt.Sprintf("interface %s has no MAC address", digits.Quote(name)), all)
		}
	}
	if name != "" {
		return 0, "", noInterface(fmt.Sprintf("there is no interface %s", digits.Quote(name)), all)
	}
	return 0, "", noInterface("no interface has a MAC address", all)
}

func noInterface(what string, all []net.Interface) error {
	var list strings.Builder
	for _, i := range all {
		mac := "no MAC"
		if len(i.HardwareAddr) > 0 {
			mac = i.HardwareAddr.String()
		}
		fmt.Fprintf(&list, ", %s (%s)", i.Name, mac)
	}
	there := strings.TrimPrefix(list.String(), ", ")
	if there == "" {
		there = "none"
	}
	return errors.New("flake: " + what + "; there are: " + there + "; name another, or set worker_id, such as \"02:00:00:00:00:01\"")
}

func workerOf(bytes []byte) (w Worker) {
	for _, o := range bytes {
		w = w<<8 | Worker(o)
	}
	return w
}
