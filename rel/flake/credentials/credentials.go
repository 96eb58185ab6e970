// Package credentials reads the files that a configuration names: certificates, the token of
// HTTP, and what etcd asks for.
package credentials

import (
	"fmt"
	"log/slog"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/node/certs"
	"github.com/flake-go/flake/rel/flake/cli"
)

// NodeCerts reads the files of [node.tls]. Without that table it returns nil.
func NodeCerts(cfg config.Node, log *slog.Logger) (*certs.Source, error) {
	if !cfg.TLS.On {
		return nil, nil
	}
	files := certs.Files{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key}
	if cfg.TLS.Verify == config.VerifyPeer {
		files.CA = cfg.TLS.CA
	}
	s, err := certs.Open(files, log)
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("node.tls: %w", err))
	}
	return s, nil
}

// HTTPCerts reads the files of [http.tls]. Without that table, or HTTP, it returns nil.
func HTTPCerts(cfg config.HTTP, log *slog.Logger) (*certs.Source, error) {
	if !cfg.TLS.On || cfg.Listen == "" {
		return nil, nil
	}
	s, err := certs.Open(certs.Files{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key}, log)
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("http.tls: %w", err))
	}
	return s, nil
}

// minToken is the shortest accepted token: 64 bits, if random and in base 16.
const minToken = 16

// Token reads the token's file; without a file there is no token.
func Token(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	token, err := config.Secret(path)
	if err != nil {
		return "", fmt.Errorf("http.token_file %q: %w", path, err)
	}
	if len(token) < minToken {
		return "", fmt.Errorf("http.token_file %q: %d characters or more wanted, as of openssl rand -hex 16", path, minToken)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("http.token_file %q: printable characters of ASCII without spaces wanted", path)
		}
	}
	return token, nil
}

// readPassword reads the password of etcd's user; without a file there is none.
func readPassword(cfg config.Etcd) (password string, err error) {
	if cfg.PasswordFile == "" {
		return "", nil
	}
	if password, err = config.Secret(cfg.PasswordFile); err != nil {
		return "", fmt.Errorf("etcd.password_file %q: %w", cfg.PasswordFile, err)
	}
	return password, nil
}
