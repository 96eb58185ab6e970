// Package files reads the files that operators name, within limits: secrets and certificates.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// MaxSecret is larger than any valid secret.
const MaxSecret = 4096

// Secret reads a secret from the file at path, which may be a link. The file has one line,
// which is returned without its line end. Only the owner may have write access. If the owner
// is the user of this process, only the owner may have read access; a file that root owns may
// be readable by all, as secrets in Docker and Kubernetes are.
func Secret(path string) (string, error) {
	text, info, err := Read(path, MaxSecret)
	if err != nil {
		return "", err
	}
	user, _ := Owner(info)
	if err := guarded(info.Mode(), user, os.Geteuid()); err != nil {
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

// Read reads a regular file of at most most bytes. It refuses other files, such as pipes,
// which may block the reader or never end. All files that operators name are read with it.
func Read(path string, most int64) (string, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return "", nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	}
	defer f.Close()
	info, err := f.Stat() // of the opened file: the path may lead to another by now
	if err == nil && !info.Mode().IsRegular() {
		return "", nil, errors.New("cannot be read: not a regular file")
	}
	var b []byte
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(f, most+1)) // the size may be out of date, or 0 as in /proc
	}
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	case int64(len(b)) > most:
		return "", nil, fmt.Errorf("the file is %d bytes long; the limit is %d", max(info.Size(), int64(len(b))), most)
	}
	return string(b), info, nil
}

// guarded returns an error if the mode of a secret's file gives other users too much access.
// self is the user that this process runs as.
func guarded(mode fs.FileMode, owner, self int) error {
	const root = 0
	err := CheckMode(mode, 0o022, "be able to write it")
	if err == nil && owner == self && self != root {
		err = CheckMode(mode, 0o077, "have access")
	}
	return err
}

// CheckMode returns an error if any of bits are set in a file's mode. what says what these bits let
// other users do.
func CheckMode(mode, bits fs.FileMode, what string) error {
	if mode&bits != 0 && runtime.GOOS != "windows" { // Windows files have no such mode
		return fmt.Errorf("the file's mode is %04o: other users must not %s", mode.Perm(), what)
	}
	return nil
}
