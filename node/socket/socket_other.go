//go:build !linux

package socket

import "net"

// Adopt returns c.
func Adopt(c net.Conn) net.Conn { return c }

// Serve calls step until it fails, and returns its error.
func Serve(_ net.Conn, step func() error) error {
	for {
		if err := step(); err != nil {
			return err
		}
	}
}
