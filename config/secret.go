package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// maxSecret bounds what is read: more than the longest secret of any kind.
const maxSecret = 4096

var errMode = errors.New("no access for others wanted")

// Secret reads a secret from the file at path, or where that links to. It is one line,
// whose end is left out. Nobody but the owner may write the file. If it belongs to the
// user of this process, nobody else may read it; but root's may be read by all, as
// secrets of Docker and Kubernetes are.
func Secret(path string) (string, error) {
	text, info, err := readFile(path, maxSecret)
	if err != nil {
		return "", err
	}
	if err := guarded(info.Mode(), owner(info), os.Geteuid()); err != nil {
		return "", err
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	switch {
	case text == "":
		return "", errors.New("the file is empty")
	case strings.ContainsAny(text, "\r\n"):
		return "", errors.New("the file has more than one line")
	}
	return text, nil
}

// readFile reads a regular file of at most this many bytes: others, such as a pipe, may keep the
// reader waiting, or never end.
func readFile(path string, most int64) (string, fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return "", nil, errors.New("cannot be read: not a regular file")
	}
	f, err := os.Open(path)
	var b []byte
	if err == nil {
		defer f.Close()
		b, err = io.ReadAll(io.LimitReader(f, most+1)) // it may have grown, or say that it is empty
	}
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	case int64(len(b)) > most:
		return "", nil, fmt.Errorf("the file has %d bytes, and at most %d wanted", max(info.Size(), int64(len(b))), most)
	}
	return string(b), info, nil
}

// guarded returns an error if a file's mode lets others do what they may not with the
// secret of a process of self.
func guarded(mode fs.FileMode, owner, self int) error {
	const root = 0
	switch {
	case runtime.GOOS == "windows": // its files have no such mode
		return nil
	case mode&0o022 != 0:
		return fmt.Errorf("the file's mode is %04o: %w to write", mode.Perm(), errMode)
	case owner == self && self != root:
		return ownersAlone(mode)
	}
	return nil
}

// ownersAlone returns an error if others may read or write a file.
func ownersAlone(mode fs.FileMode) error {
	if mode&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("the file's mode is %04o: %w", mode.Perm(), errMode)
	}
	return nil
}
