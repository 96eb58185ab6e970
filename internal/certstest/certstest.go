// Package certstest makes certificates for tests.
package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA issues certificates into files.
type CA struct {
	Dir  string
	File string // its own certificate
	Pool *x509.CertPool

	t     *testing.T
	cert  *x509.Certificate // its template
	key   *ecdsa.PrivateKey
	chain [][]byte // appended to each certificate that it issues
}

// NewCA makes a CA with its own directory.
func NewCA(t *testing.T, name string) *CA {
	t.Helper()
	dir := t.TempDir()
	ca := &CA{Dir: dir, File: filepath.Join(dir, "ca.pem"), Pool: x509.NewCertPool()}
	ca.t, ca.cert, ca.key = t, newCATemplate(name), newKey(t)
	ca.Pool.AppendCertsFromPEM(write(t, ca.File, "CERTIFICATE", ca.sign(ca.cert, ca.key)))
	return ca
}

// Under makes a CA whose certificate is issued by this one. Clients that trust this CA trust
// the new one too.
func (ca *CA) Under(name string) *CA {
	ca.t.Helper()
	under := *ca
	under.Dir, under.cert, under.key = ca.t.TempDir(), newCATemplate(name), newKey(ca.t)
	under.chain = append([][]byte{ca.sign(under.cert, under.key)}, ca.chain...)
	return &under
}

// Issue writes a certificate for a host, and its key, and returns their paths. An IP address is
// also listed as a DNS name, because OTP 25 looks for it there.
func (ca *CA) Issue(name, host string) (cert, key string) {
	ca.t.Helper()
	return ca.IssueFor(name, host, newTemplate(name).NotBefore, newTemplate(name).NotAfter)
}

// IssueFor is like Issue, for a certificate that is valid in the given period.
func (ca *CA) IssueFor(name, host string, from, until time.Time) (cert, key string) {
	ca.t.Helper()
	template := newTemplate(name)
	template.NotBefore, template.NotAfter = from, until
	template.DNSNames = []string{host}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	k := newKey(ca.t)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		ca.t.Fatal(err)
	}
	cert, key = filepath.Join(ca.Dir, name+".pem"), filepath.Join(ca.Dir, name+".key")
	write(ca.t, cert, "CERTIFICATE", append([][]byte{ca.sign(template, k)}, ca.chain...)...)
	write(ca.t, key, "PRIVATE KEY", pkcs8)
	return cert, key
}

// Client returns the settings of a caller that trusts this CA and presents a certificate
// issued by it.
func (ca *CA) Client(name, host string) *tls.Config {
	ca.t.Helper()
	cert, err := tls.LoadX509KeyPair(ca.Issue(name, host))
	if err != nil {
		ca.t.Fatal(err)
	}
	return &tls.Config{RootCAs: ca.Pool, Certificates: []tls.Certificate{cert}}
}

func (ca *CA) sign(template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		ca.t.Fatal(err)
	}
	return der
}

func newTemplate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}
}

func newCATemplate(name string) *x509.Certificate {
	template := newTemplate(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return template
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, path, kind string, ders ...[]byte) (text []byte) {
	for _, der := range ders {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return text
}
