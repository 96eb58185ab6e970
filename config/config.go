// Package config reads flake's configuration, a TOML file (https://toml.io/en/v1.0.0),
// into a typed and validated value. The shipped, commented file is rel/files/sys.toml.
//
// Start at [Load], which reports all faults of a file, and of the flags that override
// it, at once, each as an [Error]. [Environ] makes flags of the environment. [Config.Values] tells from
// where each value is.
//
// Not supported: several files.
package config

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
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

	Ignored []Ignored

	from map[string]string // by key: where its value is from, unless the default
}

// Node is the table [node]: how the node appears to Erlang.
type Node struct {
	Name        string // name@host
	Cookie      string
	CookieFrom  string        // the flag or cookie file it came from; empty: the file, or the default
	Listen      string        // "host:port", or empty: any free port, at all addresses unless the name is on the loopback
	EPMD        string        // "auto", "off" or "host:port"
	NetTicktime time.Duration // seconds in the file

	MaxConnections        int64 // nodes that may be connected
	MaxConnectionsPerHost int64 // of them, those of one host

	TLS TLS

	PreviousCookie string        // that other nodes may still have, or empty
	DrainTime      time.Duration // from SIGTERM to the stop; seconds in the file
	MemoryLimit    int64         // bytes that the node may take; 0: what its control groups say

	CookieFile         string // that has Cookie; or empty
	PreviousCookieFile string // that has PreviousCookie; or empty
}

// FixedPort returns the port of Listen, or "" if any free one will do.
func (n *Node) FixedPort() string {
	_, port, err := net.SplitHostPort(n.Listen)
	if err != nil || port == "0" {
		return ""
	}
	return port
}

// TLS is the table [node.tls]: the files that let nodes talk in private.
type TLS struct {
	On     bool   // the table exists
	Cert   string // PEM files
	Key    string
	CA     string // empty only if nothing is verified
	Verify string // VerifyPeer or VerifyNone
}

// The values of TLS.Verify.
const (
	VerifyPeer = "peer" // each side shows a certificate issued by the CA
	VerifyNone = "none" // other nodes' certificates are neither requested nor checked
)

// Flake is the table [flake]: what ids are made of.
type Flake struct {
	Interface         string           // whose MAC is the worker id, or empty
	WorkerID          net.HardwareAddr // six bytes, or nil
	Random            bool             // the worker id is random, and kept beside the mark
	Etcd              bool             // the worker id is from etcd; at most one of the four is set
	TimestampPath     string           // or empty: a file in a folder of this user's
	AllowableDowntime time.Duration    // milliseconds in the file
	Clock             string           // ClockWall or ClockMonotonic
}

// The values of Flake.Clock.
const (
	ClockWall      = "wall"      // ids have the time that the machine shows
	ClockMonotonic = "monotonic" // and that of the start, and how long that is ago
)

// HTTP is the table [http]: ids, and what the node is, over HTTP.
type HTTP struct {
	Listen    string // "host:port", or empty: no HTTP
	TokenFile string // callers must send its content; or empty
	Open      bool   // anyone may call, even from other hosts; not with a TokenFile
	TLS       HTTPTLS
	Pprof     bool // profiles are to be had, with the token
}

// HTTPTLS is the table [http.tls]: the files that make HTTP HTTPS.
type HTTPTLS struct {
	On   bool   // the table exists
	Cert string // PEM files
	Key  string
}

// Log is the table [log]: what the node writes to standard error.
type Log struct {
	Level  slog.Level // lines below it are not written
	Format string     // LogText or LogJSON
}

// The values of Log.Format.
const (
	LogText = "text" // key=value
	LogJSON = "json" // an object a line
)

// PublishedCookie is the default cookie. Anyone can read it here, so it is for the loopback
// only.
const PublishedCookie = "flake"

// Default is the configuration of an empty file.
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
			Random:            true,
			AllowableDowntime: 30 * 24 * time.Hour,
			Clock:             ClockWall,
		},
		Etcd: Etcd{Prefix: "flake", Hold: 10 * time.Minute},
		Log:  Log{Level: slog.LevelInfo, Format: LogText},
	}
}

func (l *Log) settings() []setting {
	return []setting{
		{"log.level", `"debug", "info", "warn" or "error" wanted`, setLevel(&l.Level), func() bool { return true },
			func() string { return fmt.Sprintf("%q", strings.ToLower(l.Level.String())) }},
		{"log.format", `"text" or "json" wanted`, setString(&l.Format),
			func() bool { return l.Format == LogText || l.Format == LogJSON },
			func() string { return fmt.Sprintf("%q", l.Format) }},
	}
}

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func setLevel(p *slog.Level) func(any) bool {
	return func(v any) bool {
		name, _ := v.(string)
		level, ok := levels[name]
		if ok {
			*p = level
		}
		return ok
	}
}
