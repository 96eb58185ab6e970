// Package config reads flake's configuration, a TOML file (https://toml.io/en/v1.0.0),
// into a typed and validated value. The shipped, commented file is rel/files/sys.toml.
//
// Start at [Load]. It reports all faults of a file, and of the flags that override it,
// together, each as an [Error]. [Environ] returns the environment as flags. [Config.Values]
// returns each value with its source. Each key has a row in settings.go.
//
// Not supported: a configuration in several files.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/stores"
)

// Config is everything an operator can set.
type Config struct {
	Node       Node
	Flake      Flake
	Generators []Generator
	HTTP       HTTP
	Numbers    Numbers
	Log        Log

	from map[string]string // the source of each value, by key; a key with its default is absent
}

// Node is the table [node]: how the node appears to Erlang.
type Node struct {
	Name        string // name@host
	Cookie      string
	CookieFrom  string        // the flag or cookie file that set it; empty: the configuration file, or the default
	Listen      string        // "host:port"; empty: any free port, on all addresses unless Name is on loopback
	EPMD        string        // "auto", "off" or "host:port"
	NetTicktime time.Duration // seconds in the file

	MaxConnections        int64 // with other nodes
	MaxConnectionsPerHost int64 // with nodes on one host

	TLS TLS

	PreviousCookie string        // a cookie that other nodes may still use, or empty
	DrainTime      time.Duration // from SIGTERM until the node stops; seconds in the file
	MemoryLimit    int64         // in bytes; 0: the limit of the node's control groups

	CookieFile         string // the file that contains Cookie, or empty
	PreviousCookieFile string // the file that contains PreviousCookie, or empty
}

// FixedPort returns the port of Listen, or "" if any free port will do.
func (n *Node) FixedPort() string {
	_, port, _ := net.SplitHostPort(n.Listen)
	if port == "0" {
		return ""
	}
	return port
}

// TLS is the table [node.tls]: the files for encrypted connections between nodes.
type TLS struct {
	On     bool   // the table exists
	Cert   string // PEM files
	Key    string
	CA     string // empty only if Verify is VerifyNone
	Verify string // VerifyPeer or VerifyNone
}

// The values of TLS.Verify.
const (
	VerifyPeer = "peer" // each side shows a certificate issued by the CA
	VerifyNone = "none" // other nodes' certificates are neither requested nor checked
)

// Flake is the table [flake]: the settings of the generator flake.
type Flake struct {
	Generator                       // its number is the worker id
	Interface         string        // its MAC is the worker id; empty: the id is configured, random or assigned
	TimestampPath     string        // empty: a file in a directory of this user
	AllowableDowntime time.Duration // milliseconds in the file
	Clock             string        // ClockWall or ClockMonotonic
}

// The values of Flake.Clock.
const (
	ClockWall      = "wall"      // ids have the time of the machine's clock
	ClockMonotonic = "monotonic" // ids have the time at startup plus the time elapsed since
)

// HTTP is the table [http]: ids, and the state of the node, over HTTP.
type HTTP struct {
	Listen    string // "host:port", or empty: no HTTP
	TokenFile string // callers must send the file's content; empty: no token
	Open      bool   // anyone may call, even from other hosts; excludes TokenFile
	TLS       HTTPTLS
	Pprof     bool // callers with the token may get profiles

	Metrics string // "host:port" that serves metrics and health without the token, or empty
}

// HTTPTLS is the table [http.tls]: the files for HTTPS.
type HTTPTLS struct {
	On   bool   // the table exists
	Cert string // PEM files
	Key  string
}

// Numbers is the table [numbers], and the table of the store that it names: the store that assigns
// the numbers that keep nodes' ids apart.
type Numbers struct {
	On           bool          // the table [numbers] exists
	Store        string        // one of stores.Kinds
	Prefix       string        // of the keys in the store
	Count        int64         // how many numbers there are; 0: as many as fit in the formats
	Hold         time.Duration // seconds in the file
	StartTimeout time.Duration // how long the node waits for the store at startup; seconds in the file; 0: forever
	Wait         bool          // wait if no number is free
	Keys         stores.Values // of the store's table
}

// Kind returns the store's entry in stores.Kinds, or nil.
func (n *Numbers) Kind() *stores.Kind { return stores.Of(n.Store) }

// Open returns the store, and a function that makes it use the values that n then has of the keys
// that reload. It does not connect. If peek is set, the store makes nothing that is missing.
func (n Numbers) Open(peek bool) (s workers.Store, reload func(n Numbers), err error) {
	var keys atomic.Pointer[stores.Values]
	reload = func(n Numbers) { keys.Store(&n.Keys) }
	reload(n)
	s, err = n.Kind().Open(func() stores.Values { return *keys.Load() }, peek)
	return s, reload, err
}

// Advise adds advice for the operator to an error from the store.
func (n *Numbers) Advise(err error) error {
	if err == nil {
		return nil
	}
	advice := n.Kind().Advise(err, n.Prefix)
	if errors.Is(err, workers.ErrNoneFree) {
		advice = "set numbers.wait to wait for one, or take one from its node: flake workers release NUMBER"
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// Log is the table [log]: what the node writes to standard error.
type Log struct {
	Level  slog.Level // lines of a lower level are not written
	Format string     // LogText or LogJSON
}

// The values of Log.Format.
const (
	LogText = "text" // key=value
	LogJSON = "json" // an object per line
)

// PublishedCookie is the default cookie. It is accepted only on loopback, because it is public.
const PublishedCookie = "flake"

// Default returns the configuration of an empty file.
func Default() Config {
	return Config{
		Node: Node{
			Name:        "flake@127.0.0.1",
			Cookie:      PublishedCookie,
			EPMD:        "auto",
			NetTicktime: 60 * time.Second,

			MaxConnections:        16384,
			MaxConnectionsPerHost: 4096,

			TLS: TLS{Verify: VerifyPeer},
		},
		Flake: Flake{
			Generator:         Generator{Name: "flake", Format: "flake", Random: true},
			AllowableDowntime: 30 * 24 * time.Hour,
			Clock:             ClockWall,
		},
		Numbers: Numbers{Prefix: "flake", Hold: 10 * time.Minute},
		Log:     Log{Level: slog.LevelInfo, Format: LogText},
	}
}

// Assigned reports whether the store assigns the number of any generator.
func (c *Config) Assigned() bool { return len(c.assignedKeys()) > 0 }

func (c *Config) assignedKeys() (keys []string) {
	for _, name := range c.Flake.Assigned {
		keys = append(keys, "flake."+name)
	}
	for i, g := range c.Generators {
		for _, name := range g.Assigned {
			keys = append(keys, generatorKey(i)+"."+name)
		}
	}
	return keys
}

// MaxNumber returns the highest number that fits in the ids of every generator whose number the
// store assigns.
func (c *Config) MaxNumber() uint64 {
	most := uint64(math.MaxUint16)
	for _, g := range c.Generators {
		if len(g.Assigned) > 0 {
			most = min(most, g.Kind().MaxNumber(g.Options, g.Assigned))
		}
	}
	return min(most, uint64(c.Numbers.Count)-1) // if Count is 0, this is most
}
