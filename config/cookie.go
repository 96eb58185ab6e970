package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
)

const (
	cookieKey   = "node.cookie"
	previousKey = "node.previous_cookie"
)

// isCookie reports whether the value of a key must stay hidden.
func isCookie(key string) bool { return key == cookieKey || key == previousKey }

// HomeCookieFile is the file in the home directory that holds the cookie of Erlang nodes.
const HomeCookieFile = ".erlang.cookie"

// homeCookie reads HomeCookieFile. Without that file it returns a Flag without a key.
func homeCookie() (Flag, *Error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Flag{}, nil
	}
	path := filepath.Join(home, HomeCookieFile)
	cookie, err := Secret(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Flag{}, nil
	case errors.Is(err, errMode):
		return Flag{}, &Error{File: path, Key: cookieKey, Want: fmt.Sprintf("%v (chmod 400), or a cookie set elsewhere", err)}
	case err != nil:
		return Flag{}, &Error{File: path, Key: cookieKey, Want: err.Error()}
	case strings.ContainsFunc(cookie, func(r rune) bool { return r > unicode.MaxASCII }):
		return Flag{}, &Error{File: path, Key: cookieKey, Value: hidden, Want: "characters of ASCII wanted, as Erlang does in this file"}
	}
	return Flag{Name: path, Key: cookieKey, Value: cookie}, nil
}

// maxSecret bounds what is read: more than the longest secret of any kind.
const maxSecret = 4096

var errMode = errors.New("no access for others wanted")

// Secret reads a secret from the file at path, as Erlang reads its cookie: only the
// owner may have access to it, and it ends at the first newline.
func Secret(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxSecret) {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("not a short regular file")}
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	case runtime.GOOS != "windows" && info.Mode()&0o077 != 0:
		return "", fmt.Errorf("the file's mode is %04o: %w", info.Mode().Perm(), errMode)
	}
	secret, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSuffix(secret, "\r"), nil
}
