//go:build !linux

package socket

import "net"

// EnoughThreads returns nil.
func EnoughThreads() error { return nil }

// Adopt returns c.
func Adopt(c net.Conn) net.Conn { return c }

// Serve calls step until it fails, and returns its error.
func Serve(_ net.Conn, step func() error) (err error) {
	for err == nil {
		err = step()
	}
	return err
}
