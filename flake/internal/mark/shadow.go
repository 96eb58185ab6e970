package mark

import "path/filepath"

// Shadow is a [Disk] for rehearsals: it reads the machine's file system, takes no locks and
// discards writes. Lock still fails if this user cannot create files in the directory.
type Shadow struct {
	OS
	Empty bool // pretend that every directory exists, but no file
}

func (d Shadow) Resolve(path string) (string, error) {
	if d.Empty {
		return path, nil
	}
	return d.OS.Resolve(path)
}

func (d Shadow) Lock(path string) (Lock, error) {
	if d.Empty {
		return nothing{}, nil
	}
	dir := filepath.Dir(path)
	_, err := folder(dir)
	if err == nil {
		err = writable(dir)
	}
	return nothing{}, err
}

func (Shadow) Overwrite(string, int64, []byte) error { return nil }
func (Shadow) Create(string) (Writer, error)         { return nothing{}, nil }
func (Shadow) Rename(string, string) error           { return nil }
func (Shadow) SyncDir(string) error                  { return nil }

// nothing is a lock that locks nothing, and a file that discards writes.
type nothing struct{}

func (nothing) Keep() (bool, error)         { return false, nil }
func (nothing) Write(b []byte) (int, error) { return len(b), nil }
func (nothing) Sync() error                 { return nil }
func (nothing) Close() error                { return nil }
