//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// Owner returns the user and the group that a file belongs to, or -1 where files have none.
func Owner(info fs.FileInfo) (uid, gid int) {
	owner := info.Sys().(*syscall.Stat_t)
	return int(owner.Uid), int(owner.Gid)
}
