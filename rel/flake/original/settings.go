// Package original reads what boundary/flake, the Erlang server that this node replaces, leaves on a disk: its
// dets file, and the sys.config and vm.args that it was started with.
//
// Start at [ReadDets], and at [Settings], which [ReadSysConfig] and [ReadVMArgs] fill and [Settings.TOML] writes as
// a configuration of this node. What of them is not taken is told, with why.
//
// The files are read as hostile: every size is bounded, and every offset checked. Not supported: a file that is open
// in a running original, whose last times are not in it yet.
package original

import (
	"net"
	"time"
)

// Settings are those of the original that this node can have too. The zero value has none of them.
//
// As for Erlang, what [ReadVMArgs] finds wins over what [ReadSysConfig] does: call that first.
type Settings struct {
	Name   string // name@host; empty: none was set
	Cookie string // empty: none was set, so Erlang read ~/.erlang.cookie

	ListenHost           string // the address that it listens at (inet_dist_use_interface); empty: all
	ListenMin, ListenMax int    // the ports that it may listen on (inet_dist_listen_min and max); 0: any
	NetTicktime          time.Duration
	TLS                  TLS

	Interface         string           // whose MAC is the worker id; empty: eth0, or in later versions the first with a MAC
	WorkerID          net.HardwareAddr // nil: not known, as it is in no file
	DetsPath          string           // its timestamp_path, which is a dets file; empty: DefaultDets
	AllowableDowntime time.Duration    // 0: not set

	TimestampPath string // where this node is to keep its mark; empty: in its default place

	Taken []string // what was taken, as "vm.args: -name flake@host"
	Left  []string // what was not, and why
}

// TLS is the distribution over TLS, as -proto_dist inet_tls has it.
type TLS struct {
	On            bool
	Cert, Key, CA string // PEM files; empty: not known
	VerifyNone    bool   // other nodes' certificates are not checked
}

// DefaultDets is where the dets file is unless timestamp_path is set.
const DefaultDets = "/tmp/flake-timestamp-dets"

func (s *Settings) take(what string)       { s.Taken = append(s.Taken, what) }
func (s *Settings) leave(what, why string) { s.Left = append(s.Left, what+": "+why) }
