//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mark

import (
	"errors"
	"os"
	"syscall"
)

const (
	noFollow = syscall.O_NOFOLLOW
	noWait   = syscall.O_NONBLOCK // do not wait for the other end of a pipe
)

// flock locks a file until it is closed. The kernel releases the lock however the process ends.
func flock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return ErrLocked
	case err != nil:
		return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return nil
}

// writable returns an error if this user cannot create files in the directory.
func writable(dir string) error {
	const writeAndSearch = 3
	if err := syscall.Access(dir+"/.", writeAndSearch); err != nil {
		return &os.PathError{Op: "write", Path: dir, Err: err}
	}
	return nil
}

// device returns the number of the device that a file is on.
func device(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Dev)
	}
	return 0
}
