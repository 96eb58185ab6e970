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
// which may block the reader or never end. All files that operators name are read with it.
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

// HomeCookieFile is the name of the file that contains the cookie of Erlang nodes.
const HomeCookieFile = ".erlang.cookie"

// homeCookie reads Erlang's cookie file, as OTP 25 to 29 do: the one in the home directory or, if that does
// not exist, the one in the directory erlang of the user's configuration. If neither exists, the Flag
// has no key.
func homeCookie() (Flag, *Error) {
	var paths []string
	if home, err := os.UserHomeDir(); err == nil {
		paths = append(paths, filepath.Join(home, HomeCookieFile))
	}
	if dir, err := os.UserConfigDir(); err == nil { // in XDG_CONFIG_HOME, if that is set
		paths = append(paths, filepath.Join(dir, "erlang", HomeCookieFile))
	}
	for _, path := range paths {
		cookie, err := readCookie(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return Flag{}, &Error{File: path, Key: cookieKey, Want: err.Error()}
		default:
			return Flag{Name: path, Key: cookieKey, Value: cookie}, nil
		}
	}
	return Flag{}, nil
}

// readCookie reads Erlang's cookie file by Erlang's rules: only the owner may have access, and the cookie
// is one line of ASCII, after which there may be spaces and ends of lines.
func readCookie(path string) (string, error) {
	text, info, err := ReadFile(path, maxSecret)
	if err == nil {
		err = checkMode(info.Mode(), 0o077, "have access (chmod 400), or set a cookie elsewhere")
	}
	if err != nil {
		return "", err
	}
	cookie, rest := text, ""
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		cookie, rest = text[:end], text[end:]
	}
	switch {
	case strings.ContainsFunc(cookie, func(r rune) bool { return r > unicode.MaxASCII }):
		return "", errors.New("must be ASCII, as Erlang requires in this file")
	case strings.Trim(rest, "\r\n ") != "":
		return "", errors.New("the file has more than one line, which Erlang refuses")
	}
	return cookie, nil
}
