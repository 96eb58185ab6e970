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
	path, err := defaultTimestamp()
	if err != nil {
		return "", err
	}
	return path, os.MkdirAll(filepath.Dir(path), 0o700)
}

func defaultTimestamp() (string, error) {
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
	return filepath.Join(state, "flake", "timestamp"), nil
}
