package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

const (
	cookieKey   = "node.cookie"
	previousKey = "node.previous_cookie"

	ofFile = "_file" // the end of a key that has a cookie's file
)

// isCookie reports whether the value of a key must stay hidden.
func isCookie(key string) bool { return key == cookieKey || key == previousKey }

// cookieOf returns the key of a cookie that key sets, itself or by a file, or "".
func cookieOf(key string) string {
	if cookie := strings.TrimSuffix(key, ofFile); isCookie(cookie) {
		return cookie
	}
	return ""
}

// cookieFiles reads the files of cookies that values name.
func cookieFiles(values map[string]any) (read []Flag, faults []*Error) {
	for _, key := range []string{cookieKey, previousKey} {
		path := textOf(values[key+ofFile])
		if path == "" {
			continue
		}
		cookie, err := Secret(path)
		if textOf(values[key]) != "" {
			err = fmt.Errorf("%s is set too: only one of the two wanted", key)
		}
		if err != nil {
			faults = append(faults, &Error{Key: key + ofFile, Value: show("", path), Want: err.Error()})
			continue
		}
		read = append(read, Flag{path, key, cookie})
	}
	return read, faults
}

// textOf returns the text of a value, or "".
func textOf(v any) string {
	if f, isFlag := v.(Flag); isFlag {
		return f.Value
	}
	text, _ := v.(string)
	return text
}

// HomeCookieFile is the file in the home directory that holds the cookie of Erlang nodes.
const HomeCookieFile = ".erlang.cookie"

// homeCookie reads HomeCookieFile, as Erlang does: only the owner may have access to it,
// and the cookie ends at the first newline. Without that file it returns a Flag without a
// key.
func homeCookie() (Flag, *Error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Flag{}, nil
	}
	path := filepath.Join(home, HomeCookieFile)
	text, info, err := readFile(path, maxSecret)
	if err == nil {
		err = ownersAlone(info.Mode())
	}
	cookie, _, _ := strings.Cut(text, "\n")
	cookie = strings.TrimSuffix(cookie, "\r")
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
