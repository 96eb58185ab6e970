package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/flake-go/flake/internal/files"
)

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
	text, info, err := files.Read(path, files.MaxSecret)
	if err == nil {
		err = files.CheckMode(info.Mode(), 0o077, "have access (chmod 400), or set a cookie elsewhere")
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
