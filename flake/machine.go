package flake

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
)

// machineOf returns what identifies this machine, whose root is given.
func machineOf(root fs.FS) (string, error) {
	all, err := interfaces()
	if err != nil {
		return "", err
	}
	host, _ := os.Hostname() // the rest identifies a machine without one
	return identify(root, all, host), nil
}

// identify makes one value of the machine-id, which is not to be published (machine-id(5)), the
// host name, and the MACs of the cards that are not virtual, or of all where every one is, as in
// a container.
func identify(root fs.FS, all []net.Interface, host string) string {
	id, err := fs.ReadFile(root, "etc/machine-id")
	if err != nil {
		id, _ = fs.ReadFile(root, "var/lib/dbus/machine-id")
	}
	var cards, virtual []string
	for _, i := range all {
		if _, err := fs.Stat(root, "sys/class/net/"+i.Name+"/device"); err == nil {
			cards = append(cards, i.HardwareAddr.String())
		} else {
			virtual = append(virtual, i.HardwareAddr.String())
		}
	}
	if len(cards) == 0 {
		cards = virtual
	}
	slices.Sort(cards)
	sum := hmac.New(sha256.New, bytes.TrimSpace(id))
	fmt.Fprintf(sum, "flake worker %q %q", host, cards)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
