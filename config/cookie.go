package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const cookieKey = "node.cookie"

// HomeCookieFile is the file in the home directory that holds the cookie of Erlang nodes.
const HomeCookieFile = ".erlang.cookie"

// homeCookie reads HomeCookieFile as Erlang does: nobody but the owner may have access to
// it, and the cookie ends at the first newline. Without such a file it gives a Flag without
// a key.
func homeCookie() (Flag, *Error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Flag{}, nil
	}
	path := filepath.Join(home, HomeCookieFile)
	fault := func(want string) (Flag, *Error) { return Flag{}, &Error{File: path, Key: cookieKey, Want: want} }
	b, mode, err := readCookie(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Flag{}, nil
	case err != nil:
		return fault(fmt.Sprintf("cannot be read: %v", errors.Unwrap(err)))
	case runtime.GOOS != "windows" && mode&0o077 != 0:
		return fault(fmt.Sprintf("the file's mode is %04o: no access for others wanted (chmod 400), or a cookie set elsewhere", mode))
	}
	cookie, _, _ := strings.Cut(string(b), "\n")
	return Flag{Name: path, Key: cookieKey, Value: strings.TrimSuffix(cookie, "\r")}, nil
}

// maxCookieFile bounds what is read: a cookie of the longest kind, and then some.
const maxCookieFile = 4096

// readCookie gives the content of a file and its mode.
func readCookie(path string) (b []byte, mode fs.FileMode, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCookieFile {
		return nil, 0, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a short regular file")}
	}
	b, err = os.ReadFile(path)
	return b, info.Mode().Perm(), err
}
