// Package credentials reads the files that a configuration names: certificates, the HTTP
// token, and the credentials for etcd.
package credentials

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/node/certs"
	"github.com/flake-go/flake/rel/flake/cli"
)

// NodeCerts reads the files of [node.tls]. If there is no such table, it returns nil.
func NodeCerts(cfg config.Node, log *slog.Logger) (*certs.Source, error) {
	files := certs.Files{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key}
	if cfg.TLS.Verify == config.VerifyPeer {
		files.CA = cfg.TLS.CA
	}
	return open("node.tls", cfg.TLS.On, files, log)
}

// HTTPCerts reads the files of [http.tls]. If there is no such table, or no HTTP, it returns nil.
func HTTPCerts(cfg config.HTTP, log *slog.Logger) (*certs.Source, error) {
	return open("http.tls", cfg.TLS.On && cfg.Listen != "", certs.Files{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key}, log)
}

func open(table string, on bool, files certs.Files, log *slog.Logger) (*certs.Source, error) {
	if !on {
		return nil, nil
	}
	s, err := certs.Open(files, log)
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("%s: %w", table, err))
	}
	return s, nil
}

// minToken is the length of the shortest token accepted: 64 random bits in base 16.
const minToken = 16

// Token reads the token's file. If path is empty, there is no token.
func Token(path string) (string, error) {
	token, err := secret("http.token_file", path)
	if err != nil || path == "" {
		return "", err
	}
	if len(token) < minToken {
		return "", fmt.Errorf("http.token_file %q: must be %d characters or more, as openssl rand -hex 16 prints",
			path, minToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("http.token_file %q: must be printable ASCII characters without spaces", path)
	}
	return token, nil
}

// secret returns the content of the file that a key names, or "" if path is empty.
func secret(key, path string) (text string, err error) {
	if path == "" {
		return "", nil
	}
	if text, err = config.Secret(path); err != nil {
		return "", fmt.Errorf("%s %q: %w", key, path, err)
	}
	return text, nil
}
