package stores

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flake-go/flake/internal/files"
)

// Descriptions of valid values that several keys share.
const (
	mustBePath      = "must be the path of a file"
	mustBePEM       = "must be the path of a PEM file"
	mustBePrintable = "must be printable"
)

func path(s string) bool { return !strings.ContainsRune(s, 0) }

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// together returns a fault if one of two keys is set without the other.
func (v Values) together(a, b string) []Fault {
	if (v.Text(a) == "") == (v.Text(b) == "") {
		return nil
	}
	if v.Text(a) == "" {
		a, b = b, a
	}
	return []Fault{{a, "needs " + b}}
}

// secret returns the content of the file that a key names, or "" if the key is not set.
func secret(v Values, key string) (string, error) {
	path := v.Text(key)
	if path == "" {
		return "", nil
	}
	text, err := files.Secret(path)
	if err != nil {
		return "", fmt.Errorf("%s %q: %w", key, path, err)
	}
	return text, nil
}
