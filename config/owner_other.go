//go:build !unix

package config

import "io/fs"

// Owner returns no user and no group.
func Owner(fs.FileInfo) (uid, gid int) { return -1, -1 }
