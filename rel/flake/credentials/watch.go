package credentials

import (
	"crypto/sha256"
	"io/fs"

	"github.com/flake-go/flake/internal/files"
)

// Watch notices when up to 4 files have changed. It compares their contents, because a new secret
// often has the size of the old one, and may have its time.
type Watch struct{ taken, last versions }

type versions [4]struct {
	content [sha256.Size]byte
	mode    fs.FileMode
	owner   int
	fault   string
}

func versionsOf(paths ...string) (v versions) {
	for i, path := range paths {
		text, info, err := files.Read(path, files.MaxPEM)
		if err != nil {
			v[i].fault = err.Error()
			continue
		}
		v[i].content, v[i].mode = sha256.Sum256([]byte(text)), info.Mode()
		v[i].owner, _ = files.Owner(info)
	}
	return v
}

// Watched returns a watch of files that will be read next.
func Watched(paths ...string) Watch {
	v := versionsOf(paths...)
	return Watch{v, v}
}

// Changed reports whether the files differ from those that were read last. Unless atOnce is set, they
// must also be the same as in the last call, because a file may be written in several steps. If
// Changed returns true, read the files, and then call Kept.
func (w *Watch) Changed(atOnce bool, paths ...string) bool {
	now := versionsOf(paths...)
	settled := atOnce || now == w.last
	w.last = now
	if !settled || now == w.taken {
		return false
	}
	w.taken = now
	return true
}

// Kept reports whether the files did not change while they were read. If they did, the next calls of
// Changed find out when they have settled.
func (w *Watch) Kept(paths ...string) bool {
	now := versionsOf(paths...)
	kept := now == w.taken
	if !kept {
		*w = Watch{last: now}
	}
	return kept
}
