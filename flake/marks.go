package flake

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
)

// Marks is a file that keeps the marks of several generators of a program, those of
// packages snowflake and sno among them, each under a name. It is written once a
// second for all of them, and not while nobody asks for ids: the first call then waits
// for the disk, and one that would not wait fails. Close ends them all.
type Marks = durable.Marks

// OpenMarks locks the file at path, which the first generator creates if there is
// none. It fails if the file is locked, holds no marks, or is damaged. The logger is
// told of trouble with the file and its end; nil means nobody is.
//
// The file that [Open] made for one generator will do: its mark is the one with the
// empty name, which is to be opened before others. A mark stays in the file when its
// name is not used any more. A new name begins anew, but after the mark in the file
// with - and the name behind path, if there is one, as nodes used to keep.
func OpenMarks(path string, log *slog.Logger) (*Marks, error) { return durable.OpenMarks(path, log) }

// CheckMarks returns why [OpenMarks] would fail for a file, unless it is that somebody has
// locked it. It changes nothing.
func CheckMarks(path string) error { return durable.CheckMarks(path) }

// RaiseMark has the generator without a name of a file, which that of [Open] is, make only ids later than a time; the
// file is made if there is none. It returns what they are later than: what was in the file is never lowered. It fails
// as [OpenMarks] does, or if the file cannot be written.
func RaiseMark(path string, to time.Time) (time.Time, error) {
	milli, err := durable.RaiseMark(path, uint64(max(to.UnixMilli(), 0)))
	return time.UnixMilli(int64(milli)).UTC(), err
}

// KeptWorker returns the worker id that is kept beside the mark of a name. If there is none
// it makes one up, as [RandomWorker] does, which is kept from the next mark on: open a
// generator with it. Without the file another is made up, and so it is with a copy of the file
// on a machine whose machine-id(5), network cards or host name differ.
func KeptWorker(m *Marks, name string) (w Worker, made bool, err error) {
	machine, err := thisMachine()
	if err != nil {
		return 0, false, err
	}
	n, kept, err := m.Beside(name, machine, uint64(MaxWorker), func() uint64 { return uint64(RandomWorker()) })
	return Worker(n), !kept && err == nil, err
}

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
