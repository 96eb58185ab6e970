package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
)

// maxSecret is larger than any valid secret.
const maxSecret = 4096

// Secret reads a secret from the file at path, which may be a link. The file has one line,
// which is returned without its line end. Only the owner may have write access. If the owner
// is the user of this process, only the owner may have read access; a file that root owns may
// be readable by all, as secrets in Docker and Kubernetes are.
func Secret(path string) (string, error) {
	text, info, err := ReadFile(path, maxSecret)
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

// ReadFile reads a regular file of at most most bytes. It refuses other files, such as pipes,
// which may block the reader or never end. Read all files that operators name with it.
func ReadFile(path string, most int64) (string, fs.FileInfo, error) {
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
	err := checkMode(mode, 0o022, "be able to write it")
	if err == nil && owner == self && self != root {
		err = checkMode(mode, 0o077, "have access")
	}
	return err
}

// checkMode returns an error if any of bits are set in a file's mode. what says what these bits let
// other users do.
func checkMode(mode, bits fs.FileMode, what string) error {
	if mode&bits != 0 && runtime.GOOS != "windows" { // Windows files have no such mode
		return fmt.Errorf("the file's mode is %04o: other users must not %s", mode.Perm(), what)
	}
	return nil
}

const (
	cookieKey   = "node.cookie"
	previousKey = "node.previous_cookie"

	ofFile = "_file" // the suffix of keys that name a cookie's file
)

// cookieOf returns the key of the cookie that key sets, directly or by naming a file. For any other
// key, it returns "".
func cookieOf(key string) string {
	if cookie := strings.TrimSuffix(key, ofFile); cookie == cookieKey || cookie == previousKey {
		return cookie
	}
	return ""
}

// HomeCookieFile is the file in the home directory that contains the cookie of Erlang nodes.
const HomeCookieFile = ".erlang.cookie"

// homeCookie reads HomeCookieFile by Erlang's rules: only the owner may have access, and the
// cookie ends at the first newline. If the file does not exist, the Flag has no key.
func homeCookie() (Flag, *Error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Flag{}, nil
	}
	path := filepath.Join(home, HomeCookieFile)
	text, info, err := ReadFile(path, maxSecret)
	if err == nil {
		err = checkMode(info.Mode(), 0o077, "have access (chmod 400), or set a cookie elsewhere")
	}
	cookie, _, _ := strings.Cut(text, "\n")
	cookie = strings.TrimSuffix(cookie, "\r")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Flag{}, nil
	case err != nil:
		return Flag{}, &Error{File: path, Key: cookieKey, Want: err.Error()}
	case strings.ContainsFunc(cookie, func(r rune) bool { return r > unicode.MaxASCII }):
		return Flag{}, &Error{File: path, Key: cookieKey, Value: hidden,
			Want: "must be ASCII, as Erlang requires in this file"}
	}
	return Flag{Name: path, Key: cookieKey, Value: cookie}, nil
}
