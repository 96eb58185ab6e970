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
	"log/slog"
	"math"
	"net"
	"time"
)

// Config is everything an operator can set.
type Config struct {
	Node       Node
	Flake      Flake
	Generators []Generator
	HTTP       HTTP
	Etcd       Etcd
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
	Interface         string        // its MAC is the worker id; empty: the id is configured, random or from etcd
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

// Etcd is the table [etcd]: the store of the numbers that keep nodes' ids apart.
type Etcd struct {
	On           bool // the table exists
	Endpoints    []string
	Prefix       string        // of the keys
	Numbers      int64         // how many numbers there are; 0: as many as fit in the formats
	Hold         time.Duration // seconds in the file
	StartTimeout time.Duration // how long the node waits for etcd at startup; seconds in the file; 0: forever
	Wait         bool          // wait if no number is free
	User         string
	PasswordFile string // the first line is the password
	CA           string // PEM files
	Cert         string
	Key          string
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
		Etcd: Etcd{Prefix: "flake", Hold: 10 * time.Minute},
		Log:  Log{Level: slog.LevelInfo, Format: LogText},
	}
}

// FromEtcd reports whether any number comes from etcd.
func (c *Config) FromEtcd() bool { return len(c.etcdKeys()) > 0 }

func (c *Config) etcdKeys() (keys []string) {
	for _, name := range c.Flake.Etcd {
		keys = append(keys, "flake."+name)
	}
	for i, g := range c.Generators {
		for _, name := range g.Etcd {
			keys = append(keys, generatorKey(i)+"."+name)
		}
	}
	return keys
}

// MaxNumber returns the highest number that fits in the ids of every generator whose number is from
// etcd.
func (c *Config) MaxNumber() uint64 {
	most := uint64(math.MaxUint16)
	for _, g := range c.Generators {
		if len(g.Etcd) > 0 {
			most = min(most, g.Kind().MaxNumber(g.Options, g.Etcd))
		}
	}
	return min(most, uint64(c.Etcd.Numbers)-1) // if Numbers is 0, this is most
}
