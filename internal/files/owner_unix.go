//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

// nonBlocking makes an open of a pipe return immediately.
const nonBlocking = syscall.O_NONBLOCK

// Owner returns the user and the group that own a file. Where files have no owner, it returns -1.
func Owner(info fs.FileInfo) (uid, gid int) {
	owner := info.Sys().(*syscall.Stat_t)
	return int(owner.Uid), int(owner.Gid)
}
