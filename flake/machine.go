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

// thisMachine returns what identifies this machine.
func thisMachine() (string, error) {
	all, err := interfaces()
	if err != nil {
		return "", err
	}
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		id, _ = os.ReadFile("/var/lib/dbus/machine-id")
	}
	host, _ := os.Hostname() // the rest identifies a machine without one
	return identify(id, host, all, os.DirFS("/sys/class/net")), nil
}

// identify makes one value of the machine-id, which is not to be published (machine-id(5)), the
// host name, and the MACs of the cards that are not virtual, or of all where every one is, as in
// a container.
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
