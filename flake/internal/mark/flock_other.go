//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package mark

import (
	"errors"
	"os"
)

const noFollow, noWait = 0, 0

// flock fails: without a lock that ends with the process, two nodes could share a file.
func flock(*os.File) error {
	return errors.New("a durable timestamp needs file locks, which only Unix has")
}

func writable(string) error { return nil }

func device(os.FileInfo) uint64 { return 0 }
