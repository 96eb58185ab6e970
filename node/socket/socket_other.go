//go:build !linux

package socket

import "net"

// Adopt returns c.
func Adopt(c net.Conn) net.Conn { return c }

// Dedicate does nothing.
func Dedicate(net.Conn) (release func()) { return func() {} }

// Share returns nil.
func Share(net.Conn, func() error) error { return nil }
