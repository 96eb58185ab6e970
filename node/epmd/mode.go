package epmd

import (
	"fmt"
	"net"
	"os"
	"strconv"
)

// Mode says which EPMD a node registers with: Auto, Off or "host:port".
type Mode string

const (
	Auto Mode = "auto" // the one running on this host, else OTP's daemon, else one of our own
	Off  Mode = "off"  // none
)

const defaultPort = 4369

// DefaultPort returns EPMD's port: ERL_EPMD_PORT in the environment if set, else 4369.
func DefaultPort() (uint16, error) {
	env := os.Getenv("ERL_EPMD_PORT")
	if env == "" {
		return defaultPort, nil
	}
	port, err := strconv.ParseUint(env, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("epmd: ERL_EPMD_PORT is %q, a port from 1 to 65535 is allowed", env)
	}
	return uint16(port), nil
}

// addr returns the address of this mode's EPMD, empty for Off.
func (m Mode) addr(port uint16) string {
	switch m {
	case Auto:
		return joinPort(loopback, port)
	case Off:
		return ""
	}
	return string(m)
}

const (
	loopback  = "127.0.0.1"
	loopback6 = "::1"
)

func joinPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
