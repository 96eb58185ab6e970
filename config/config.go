package config

import (
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
}

// Node is the table [node]: how the node shows itself to Erlang.
type Node struct {
	Name        string // name@host
	Cookie      string
	CookieFrom  string        // the flag or the cookie file it is from; empty: the file, or the default
	Listen      string        // "host:port", or empty: any free port, at all addresses unless the name is of the loopback
	EPMD        string        // "auto", "off" or "host:port"
	NetTicktime time.Duration // in the file seconds
	TLS         TLS
}

// TLS is the table [node.tls]: the files by which nodes talk to each other in private.
type TLS struct {
	On     bool   // there is such a table
	Cert   string // PEM files
	Key    string
	CA     string // may be empty if nothing is verified
	Verify string // VerifyPeer or VerifyNone
}

// The values of TLS.Verify.
const (
	VerifyPeer = "peer" // each side shows a certificate that the CA has issued
	VerifyNone = "none" // other nodes' certificates are neither asked for nor checked
)

// Flake is the table [flake]: what the ids are made of.
type Flake struct {
	Interface         string           // whose MAC is the worker id, or empty
	WorkerID          net.HardwareAddr // six bytes, or nil
	Etcd              bool             // the worker id is from etcd; at most one of the three is set
	TimestampPath     string           // or empty: a file in a folder of this user's own
	AllowableDowntime time.Duration    // in the file milliseconds
	Peers             []string         // nodes that are asked whether their ids could be ours
	PeersInterval     time.Duration    // between two times that they are asked, in the file seconds
}

// MaxPeers bounds flake.peers. All are asked at a time.
const MaxPeers = 64

// HTTP is the table [http]: ids and what the node is, for everything that speaks HTTP.
type HTTP struct {
	Listen    string // "host:port", or empty: no HTTP
	TokenFile string // whose content callers must send, or empty
	Open      bool   // anyone may call, also from other hosts; not with a TokenFile
	TLS       HTTPTLS
}

// HTTPTLS is the table [http.tls]: the files by which HTTP becomes HTTPS.
type HTTPTLS struct {
	On   bool   // there is such a table
	Cert string // PEM files
	Key  string
}

// PublishedCookie is the default cookie. Anyone can read it here, so it is for the loopback only.
const PublishedCookie = "flake"

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		Node: Node{
			Name:        "flake@127.0.0.1",
			Cookie:      PublishedCookie,
			EPMD:        "auto",
			NetTicktime: 60 * time.Second,
			TLS:         TLS{Verify: VerifyPeer},
		},
		Flake: Flake{
			AllowableDowntime: 30 * 24 * time.Hour,
			PeersInterval:     time.Minute,
		},
		Etcd: Etcd{Prefix: "flake", Hold: 10 * time.Minute},
	}
}
