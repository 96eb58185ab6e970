//go:build !unix

package config

import "io/fs"

// Owner returns -1 for both, as files have no owner here.
func Owner(fs.FileInfo) (uid, gid int) { return -1, -1 }
