package original

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/internal/escape"
)

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
	s.node(&w)
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
	case s.Interface != "":
		w.set("interface", s.Interface, "its MAC is the worker id")
	default:
		w.comment("no interface was set: the original uses eth0, or in later versions the first interface " +
			"with a MAC; this node")
		w.comment("chooses a random worker id. To keep the original's, set interface, " +
			"or set worker_id to bytes 9 to 14 of its ids")
	}
	if s.TimestampPath != "" {
		w.set("timestamp_path", s.TimestampPath, "not its dets file: this node has its own format")
	}
	if s.AllowableDowntime > 0 {
		w.set("allowable_downtime", s.AllowableDowntime.Milliseconds(), "ms")
	}
	return w.Bytes(), w.err
}

func (s Settings) node(w *writer) {
	w.table("node")
	if s.Name != "" {
		w.set("name", s.Name, "")
	}
	if s.Cookie != "" {
		w.set("cookie", s.Cookie, "")
	} else {
		w.comment("no cookie was set: the one in ~/.erlang.cookie is read")
	}
	if s.ListenMin > 0 || s.ListenHost != "" {
		why := ""
		if s.ListenMax > s.ListenMin {
			why = fmt.Sprintf("the first of its ports, %d to %d", s.ListenMin, s.ListenMax)
		}
		w.set("listen", net.JoinHostPort(cmp.Or(s.ListenHost, "0.0.0.0"), strconv.Itoa(s.ListenMin)), why)
	}
	if s.NetTicktime > 0 {
		w.set("net_ticktime", int64(s.NetTicktime/time.Second), "seconds")
	}
}

type writer struct {
	bytes.Buffer
	err error
}

func (w *writer) table(name string) { fmt.Fprintf(w, "\n[%s]\n", name) }

func (w *writer) comment(text string) { fmt.Fprintf(w, "# %s\n", escape.Text(text)) }

func (w *writer) set(key string, value any, why string) {
	if text, ok := value.(string); ok && !utf8.ValidString(text) {
		w.err = errors.Join(w.err, fmt.Errorf("%s: its value is not UTF-8", key))
	}
	line, err := toml.Marshal(map[string]any{key: value})
	w.err = errors.Join(w.err, err)
	w.Write(bytes.TrimSuffix(line, []byte("\n")))
	if why != "" {
		w.WriteString("  ")
		w.comment(why)
		return
	}
	w.WriteString("\n")
}
