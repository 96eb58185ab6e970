// Package credentials reads the files that a configuration names: certificates and the HTTP
// token. A [Watch] notices when files change.
package credentials

import (
	"fmt"
	"strings"

	"github.com/flake-go/flake/internal/files"
)

// minToken is the length of the shortest token accepted: 64 random bits in base 16.
const minToken = 16

// Token reads the token's file. If path is empty, there is no token.
func Token(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	token, err := files.Secret(path)
	if err != nil {
		return "", fmt.Errorf("http.token_file %q: %w", path, err)
	}
	if len(token) < minToken {
		return "", fmt.Errorf("http.token_file %q: must be %d characters or more, "+
			"such as the output of openssl rand -hex 16", path, minToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("http.token_file %q: must be printable ASCII characters without spaces", path)
	}
	return token, nil
}
