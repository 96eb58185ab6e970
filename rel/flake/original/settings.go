// Package original reads the files of boundary/flake, the Erlang server that this node
// replaces: its dets file, and the sys.config and vm.args that it was started with.
//
// Start at [ReadDets] and [Settings]. [ReadSysConfig] and [ReadVMArgs] fill Settings, and [Settings.TOML]
// writes them as a configuration of this node. Settings that are not taken are reported, with the reason.
//
// The files are not trusted: every size is bounded, and every offset checked. A file that a running
// original has open is not supported, because it lacks the latest times.
package original

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/node/etf"
)

// Settings are the settings of the original that this node also has. The zero value sets none of them.
//
// As in Erlang, vm.args wins over sys.config, so call [ReadVMArgs] after [ReadSysConfig].
type Settings struct {
	Name   string // name@host; empty: none was set
	Cookie string // empty: none was set, so Erlang read ~/.erlang.cookie

	listenHost           string // the address that it listens on (inet_dist_use_interface); empty: all
	listenMin, listenMax int    // the ports that it may listen on (inet_dist_listen_min and max); 0: any
	netTicktime          time.Duration
	TLS                  config.TLS // with -proto_dist inet_tls; file names may be missing

	ifName            string           // its MAC is the worker id; empty: eth0; in later versions, the first with a MAC
	WorkerID          net.HardwareAddr // nil: unknown, because no file contains it
	DetsPath          string           // its timestamp_path, which is a dets file; empty: DefaultDets
	allowableDowntime time.Duration    // 0: not set

	TimestampPath string // where this node will keep its mark

	Taken []string // what was taken, such as "vm.args: -name flake@host"
	Left  []string // what was not taken, and why
}

// DefaultDets is where the dets file is unless timestamp_path is set.
const DefaultDets = "/tmp/flake-timestamp-dets"

// report records a setting as taken or, if why is not empty, as left for that reason.
func (s *Settings) report(what, why string) {
	if why == "" {
		s.Taken = append(s.Taken, what)
	} else {
		s.Left = append(s.Left, what+": "+why)
	}
}

// known lists the applications that have keys with an equivalent in this node.
var known = []string{"flake", "kernel"}

// unlike is the reason for leaving a key that has no equivalent in this node, whatever its value is.
const unlike = "this node has nothing like it"

// takeValue takes the value of an application's key, or returns the reason for leaving it.
func (s *Settings) takeValue(key string, value etf.Term) (why string) {
	switch key {
	case "flake interface":
		return takeText(&s.ifName, value)
	case "flake timestamp_path":
		return takeText(&s.DetsPath, value)
	case "flake allowable_downtime":
		return s.takeDowntime(value)
	case "kernel inet_dist_listen_min":
		return takePort(&s.listenMin, value)
	case "kernel inet_dist_listen_max":
		return takePort(&s.listenMax, value)
	case "kernel inet_dist_use_interface":
		return s.takeAddress(value)
	case "kernel net_ticktime":
		return s.takeTicktime(value)
	}
	return unlike
}

// TakeEnv takes the environment of an application: a list of {Key, Value}, as in a sys.config
// or from application:get_all_env/1. from names the source in messages. A key that this node
// lacks is reported without its value, because the value may be a secret.
func (s *Settings) TakeEnv(from, app string, env etf.Term) {
	pairs, ok := etf.Elements(env)
	switch {
	case !ok:
		s.report(fmt.Sprintf("%s: %s", from, app), "not a list of keys")
	case slices.Contains(known, app):
		for _, pair := range pairs {
			pair, _ := pair.(etf.Tuple)
			if len(pair) != 2 {
				s.report(fmt.Sprintf("%s: an element of %s", from, app), "not a key with a value")
				continue
			}
			s.takeKey(from, app, pair[0], pair[1])
		}
	case len(pairs) > 0:
		s.report(fmt.Sprintf("%s: %s, keys: %d", from, app, len(pairs)), "another application")
	}
}

func (s *Settings) takeKey(from, app string, key, value etf.Term) {
	name, _ := key.(etf.Atom)
	what := fmt.Sprintf("%s: %s %s", from, app, etf.Format(nil, key))
	switch why := s.takeValue(app+" "+string(name), value); why {
	case unlike:
		s.report(what, why)
	case "":
		s.report(fmt.Sprintf("%s %s", what, etf.Format(nil, value)), "")
	default:
		s.report(fmt.Sprintf("%s %.60s", what, etf.Format(nil, value)), why)
	}
}

func takeText(field *string, value etf.Term) string {
	t, ok := text(value)
	if !ok || strings.ContainsRune(t, 0) {
		return "not a string"
	}
	*field = t
	return ""
}

func (s *Settings) takeDowntime(value etf.Term) string {
	const limit = math.MaxInt64 / int64(time.Millisecond)
	switch ms, _ := value.(int64); {
	case value == etf.Atom("infinity"):
		s.allowableDowntime = time.Duration(limit) * time.Millisecond
	case ms <= 0:
		return "not a positive number of milliseconds: the default of this node applies, 30 days"
	default:
		s.allowableDowntime = time.Duration(min(ms, limit)) * time.Millisecond
	}
	return ""
}

func takePort(field *int, value etf.Term) string {
	port, ok := value.(int64)
	if !ok || uint64(port) > math.MaxUint16 {
		return "not a port"
	}
	*field = int(port)
	return ""
}

// takeAddress takes an address in the form that inet uses, such as {127,0,0,1}.
func (s *Settings) takeAddress(value etf.Term) string {
	parts, _ := value.(etf.Tuple)
	bits := map[int]int{4: 8, 8: 16}[len(parts)] // per part
	if bits == 0 {
		return "not an address"
	}
	var raw []byte
	for _, part := range parts {
		n, ok := part.(int64)
		if !ok || uint64(n)>>bits != 0 {
			return "not an address"
		}
		if bits == 16 {
			raw = append(raw, byte(n>>8))
		}
		raw = append(raw, byte(n))
	}
	address, _ := netip.AddrFromSlice(raw)
	s.listenHost = address.String()
	return ""
}

func (s *Settings) takeTicktime(value etf.Term) string {
	seconds, _ := value.(int64)
	if seconds < 4 || seconds > 3600 {
		return "this node accepts 4 to 3600 seconds, and uses 60: connected nodes should use the same"
	}
	s.netTicktime = time.Duration(seconds) * time.Second
	return ""
}

// TOML returns a sys.toml with the settings, and with comments that list what was not taken. It fails if a
// string is not UTF-8.
//
// It does not check whether the node accepts the result: a certificate may be missing, for example.
func (s Settings) TOML() ([]byte, error) {
	var w writer
	w.comment("From boundary/flake, the Erlang server that this node replaces. A key that is not here has its default.")
	for _, left := range s.Left {
		w.comment("Not taken: " + left)
	}
	w.table("node")
	if s.Name != "" {
		w.set("name", s.Name, "")
	}
	if s.Cookie != "" {
		w.set("cookie", s.Cookie, "")
	} else {
		w.comment("no cookie was set: the one in ~/.erlang.cookie is read")
	}
	if s.listenMin > 0 || s.listenHost != "" {
		why := ""
		if s.listenMax > s.listenMin {
			why = fmt.Sprintf("the first of its ports, %d to %d", s.listenMin, s.listenMax)
		}
		w.set("listen", net.JoinHostPort(cmp.Or(s.listenHost, "0.0.0.0"), strconv.Itoa(s.listenMin)), why)
	}
	if s.netTicktime > 0 {
		w.set("net_ticktime", int64(s.netTicktime/time.Second), "seconds")
	}
	if s.TLS.On {
		w.table("node.tls")
		w.set("cert", s.TLS.Cert, "")
		w.set("key", s.TLS.Key, "")
		if s.TLS.Verify == config.VerifyNone {
			w.set("verify", s.TLS.Verify, "as in the original: other nodes' certificates are not checked")
		} else {
			w.set("ca", s.TLS.CA, "the CA that issues the other nodes' certificates")
		}
	}
	w.table("flake")
	switch {
	case s.WorkerID != nil:
		w.set("worker_id", s.WorkerID.String(), "the original's")
	case s.ifName != "":
		w.set("interface", s.ifName, "its MAC is the worker id")
	default:
		w.comment("no interface was set: the original uses eth0, or in later versions the first interface " +
			"with a MAC; this node")
		w.comment("chooses a random worker id. To keep the original's, set interface, " +
			"or set worker_id to bytes 9 to 14 of its ids")
	}
	w.set("timestamp_path", s.TimestampPath, "not its dets file: this node has its own format")
	if s.allowableDowntime > 0 {
		w.set("allowable_downtime", s.allowableDowntime.Milliseconds(), "ms")
	}
	return w.Bytes(), w.err
}

type writer struct {
	bytes.Buffer
	err error
}

func (w *writer) table(name string) { fmt.Fprintf(w, "\n[%s]\n", name) }

func (w *writer) comment(text string) { fmt.Fprintf(w, "# %s\n", escape.Text(text)) }

func (w *writer) set(key string, value any, why string) {
	if text, _ := value.(string); !utf8.ValidString(text) {
		w.err = errors.Join(w.err, fmt.Errorf("%s: its value is not UTF-8", key))
	}
	line, _ := toml.Marshal(map[string]any{key: value}) // never fails for text and numbers
	w.Write(bytes.TrimSuffix(line, []byte("\n")))
	if why != "" {
		w.WriteString("  # " + escape.Text(why))
	}
	w.WriteString("\n")
}
