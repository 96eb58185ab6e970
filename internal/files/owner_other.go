//go:build !unix

package files

import "io/fs"

const nonBlocking = 0 // no file blocks an open on this system

// Owner returns -1 for both, because files have no owner on this system.
func Owner(fs.FileInfo) (uid, gid int) { return -1, -1 }
