package original

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/flake-go/flake/internal/escape"
)

// TOML returns a sys.toml with the settings, and why each is there. It fails if a text in it is not UTF-8.
//
// It does not check what the node's configuration allows: a certificate may be unknown.
func (s Settings) TOML() ([]byte, error) {
	var w writer
	w.comment("Of boundary/flake, the Erlang server that this node replaces. A key that is not here has its default.")
	for _, left := range s.Left {
		w.comment("Not taken: " + left)
	}
	s.node(&w)
	if s.TLS.On {
		w.table("node.tls")
		w.text("cert", s.TLS.Cert, "")
		w.text("key", s.TLS.Key, "")
		switch {
		case s.TLS.VerifyNone:
			w.text("verify", "none", "as there: other nodes' certificates are not checked")
		default:
			w.text("ca", s.TLS.CA, "who issues the other nodes' certificates")
		}
	}
	w.table("flake")
	switch {
	case s.WorkerID != nil:
		w.text("worker_id", s.WorkerID.String(), "the one that it has")
	case s.Interface != "":
		w.text("interface", s.Interface, "whose MAC is the worker id")
	default:
		w.comment("no interface was set: the original takes eth0, or in later versions the first with a MAC, " +
			"this node a random")
		w.comment("worker id. To keep that of the original, set interface, " +
			"or worker_id to bytes 9 to 14 of any of its ids")
	}
	if s.TimestampPath != "" {
		w.text("timestamp_path", s.TimestampPath, "not its dets file: this node has a format of its own")
	}
	if s.AllowableDowntime > 0 {
		w.number("allowable_downtime", int64(s.AllowableDowntime/time.Millisecond), "ms")
	}
	return w.Bytes(), w.err
}

func (s Settings) node(w *writer) {
	w.table("node")
	if s.Name != "" {
		w.text("name", s.Name, "")
	}
	if s.Cookie != "" {
		w.text("cookie", s.Cookie, "")
	} else {
		w.comment("no cookie was set: that of ~/.erlang.cookie is read")
	}
	if s.ListenMin > 0 || s.ListenHost != "" {
		host := s.ListenHost
		if host == "" {
			host = "0.0.0.0"
		}
		why := ""
		if s.ListenMax > s.ListenMin {
			why = fmt.Sprintf("the first of its ports, %d to %d", s.ListenMin, s.ListenMax)
		}
		w.text("listen", net.JoinHostPort(host, strconv.Itoa(s.ListenMin)), why)
	}
	if s.NetTicktime > 0 {
		w.number("net_ticktime", int64(s.NetTicktime/time.Second), "seconds")
	}
}

// writer writes TOML.
type writer struct {
	bytes.Buffer
	err error
}

func (w *writer) table(name string) { fmt.Fprintf(w, "\n[%s]\n", name) }

func (w *writer) comment(text string) { fmt.Fprintf(w, "# %s\n", escape.Text(text)) }

func (w *writer) text(key, value, why string) {
	if !utf8.ValidString(value) {
		w.err = errors.Join(w.err, fmt.Errorf("%s: its value is not UTF-8", key))
	}
	var quoted strings.Builder
	for _, r := range value {
		switch {
		case r == '"' || r == '\\':
			quoted.WriteString("\\" + string(r))
		case unicode.IsControl(r):
			fmt.Fprintf(&quoted, `\u%04x`, r)
		default:
			quoted.WriteRune(r)
		}
	}
	w.line(key, `"`+quoted.String()+`"`, why)
}

func (w *writer) number(key string, value int64, why string) { w.line(key, fmt.Sprint(value), why) }

func (w *writer) line(key, value, why string) {
	fmt.Fprintf(w, "%s = %s", key, value)
	if why != "" {
		w.WriteString("  ")
		w.comment(why)
		return
	}
	w.WriteString("\n")
}
