package main

import (
	"errors"
	"os"
	"path/filepath"
)

// rootState is where root's programs keep what outlives a restart (FHS 5.8).
const rootState = "/var/lib"

// timestampPath returns where the time is kept unless configured, in a folder that it
// makes: of all paths, this one is known to be the user's own.
func timestampPath() (string, error) {
	state := rootState
	if os.Getuid() != 0 {
		state = os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(state) { // must then be ignored (XDG Base Directory)
			home, err := os.UserHomeDir()
			if err != nil {
				return "", usageError{errors.New("flake.timestamp_path wanted: there is neither XDG_STATE_HOME nor HOME to keep the time in")}
			}
			state = filepath.Join(home, ".local", "state")
		}
	}
	dir := filepath.Join(state, "flake")
	return filepath.Join(dir, "timestamp"), os.MkdirAll(dir, 0o700)
}
