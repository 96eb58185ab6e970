package files

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// Pair reads a certificate and its key. Errors begin with the words cert or key.
func Pair(certFile, keyFile string) (pair tls.Certificate, err error) {
	cert, err := PEM("cert", certFile)
	if err != nil {
		return pair, err
	}
	key, err := PEM("key", keyFile)
	if err != nil {
		return pair, err
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		err = fmt.Errorf("cert %q and key %q: %w", certFile, keyFile, err)
	}
	return pair, err
}

// Pool reads the certificates of CAs. Errors begin with the word ca.
func Pool(file string) (*x509.CertPool, error) {
	ca, err := PEM("ca", file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("ca %q: no certificate in PEM form", file)
	}
	return pool, nil
}

// MaxPEM limits the size of a PEM file in bytes. All public CAs together have about 200 KB.
const MaxPEM = 1 << 20

// PEM reads a PEM file. Errors begin with key.
func PEM(key, path string) ([]byte, error) {
	text, _, err := Read(path, MaxPEM)
	if err != nil {
		err = fmt.Errorf("%s %q: %w", key, path, err)
	}
	return []byte(text), err
}
