// Package kubernetes lets package workers use the Kubernetes API, from inside a pod, as its
// store. It makes a few calls of [the API] with only net/http and no proxies.
//
// # One ConfigMap
//
// All keys are in the data of one ConfigMap, because the API writes only one object atomically.
// [Store.Swap] is one JSON Patch, which tests the object's uid and all values that it depends on
// and then writes. The API server applies a patch to the latest object, and again if another
// write came first, so nodes with different numbers do not conflict, which they would if they
// compared the object's resourceVersion. The answer to a write has only metadata. A patch also
// removes managedFields, the API server's list of who wrote which field, which would be a fifth
// of the object.
//
// A ConfigMap holds 1 MiB: about 5,000 numbers. Each write makes etcd store the object again,
// 250 bytes a number, and the API server sends it to all who watch ConfigMaps. So a fleet of
// 1,000 nodes should set a longer hold, or use another store.
//
// Nodes make the object when they claim the first number. It has no owner and none of the labels
// by which Helm or Argo CD recognize what they may delete.
//
// # Which object
//
// The uid of the ConfigMap is the id of the cluster. An object that was deleted and made again,
// or restored into another cluster, has another uid. A [Store] that knew the old one notices
// this, and its owner writes a floor. So that a node that never knew it does not take the new
// object for that of a new fleet, the first node also makes a Lease of the same name, which
// holds the uid. If it holds another uid than that of a ConfigMap without keys, the ConfigMap was
// deleted. Only if both are deleted do numbers look new.
//
// # Reads and writes
//
// Reads are consistent, because they name no resourceVersion. An error from a write does not say
// whether it happened, or may still happen, and net/http must not repeat a write. So each
// connection carries one request: shouldRetryRequest in net/http/transport.go does not repeat a
// request whose connection was new. Only requests that certainly wrote nothing are sent again:
// those for which there was no valid token, that came too fast, or that met too many other writes.
//
// [the API]: https://kubernetes.io/docs/reference/using-api/api-concepts/
package kubernetes

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/answers"
)

const (
	longest = 15 * time.Second // time limit of a call without an earlier deadline
	connect = 5 * time.Second  // time limit for TCP, and again for TLS

	maxHeader = 64 << 10 // bytes of an answer's header
	maxAnswer = 4 << 20  // bytes of an answer; etcd limits an object to 1.5 MiB
	maxKey    = 253      // bytes of a key in a ConfigMap
	maxShown  = 400      // bytes of an answer that an error shows

	tries = 4
)

// DefaultName is the name of the ConfigMap, and of the Lease.
const DefaultName = "flake-numbers"

// account is where Kubernetes mounts the pod's service account. A test changes it.
var account = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config says where the numbers are. The zero Config is for pods.
type Config struct {
	Name      string // empty means DefaultName
	Namespace string // empty means that of the pod
	Peek      bool   // make no objects, for a program that claims no number

	// URL, such as https://10.0.0.1:443, is for programs outside of pods. If it is empty, the other fields
	// are ignored, and Kubernetes says where the API is.
	URL       string
	TokenFile string // empty means that no token is sent
	CAFile    string // empty means those of the system
}

// Store is a [workers.Store]. It does not keep connections open, and it reads the files of the
// token and the CA for each, because Kubernetes replaces them.
type Store struct {
	server            string // its URL
	namespace, name   string
	tokenFile, caFile string
	peek              bool
	transport         *http.Transport
	history           history
}

// New returns a store. It does not connect yet.
func New(c Config) (*Store, error) {
	s := &Store{server: c.URL, namespace: c.Namespace, name: cmp.Or(c.Name, DefaultName),
		tokenFile: c.TokenFile, caFile: c.CAFile, peek: c.Peek}
	if c.URL == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("flake: not in a pod of Kubernetes: KUBERNETES_SERVICE_HOST and " +
				"KUBERNETES_SERVICE_PORT are not set")
		}
		s.server = "https://" + net.JoinHostPort(host, port)
		s.tokenFile, s.caFile = account+"/token", account+"/ca.crt"
	}
	if s.namespace == "" {
		text, err := os.ReadFile(account + "/namespace")
		if err != nil {
			return nil, fmt.Errorf("flake: the pod's namespace is unknown: %w", mounted(err))
		}
		s.namespace = strings.TrimSpace(string(text))
	}
	s.transport = &http.Transport{
		DialContext: (&net.Dialer{Timeout: connect}).DialContext, DialTLSContext: s.dial,
		Protocols: new(http.Protocols), DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader,
	}
	s.transport.Protocols.SetHTTP1(true)
	return s, nil
}

// mounted explains that a file of the service account is missing.
func mounted(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %w: does the pod have automountServiceAccountToken: true?", workers.ErrRefused, err)
	}
	return err
}

// dial connects to the API server and compares its certificate with the current CA.
func (s *Store) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*connect)
	defer cancel()
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: connect}, Config: new(tls.Config)}
	if s.caFile != "" {
		text, err := os.ReadFile(s.caFile)
		if err != nil {
			return nil, mounted(err)
		}
		d.Config.RootCAs = x509.NewCertPool()
		if !d.Config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", s.caFile)
		}
	}
	return d.DialContext(ctx, network, addr)
}

// List implements [workers.Store].
func (s *Store) List(ctx context.Context, prefix string) (map[string]string, error) {
	o, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[string]string)
	for name, text := range o.Data {
		if key, ok := decode(name); ok && strings.HasPrefix(key, prefix) {
			all[key] = text
		}
	}
	return all, nil
}

// Get implements [workers.Store].
func (s *Store) Get(ctx context.Context, keys ...string) ([]string, error) {
	o, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = o.Data[encode(key)]
	}
	return texts, nil
}

// operation is one operation of a JSON Patch, RFC 6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"` // null in a test means missing
}

// Swap implements [workers.Store]. If there is no object yet, Swap makes it.
func (s *Store) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	uid, err := s.known(ctx)
	if err != nil {
		return false, err
	}
	patch := []operation{{"test", "/metadata/uid", uid}}
	for key, text := range have {
		test := operation{"test", "/data/" + encode(key), text}
		if text == "" {
			test.Value = nil
		}
		patch = append(patch, test)
	}
	strip := operation{"add", "/metadata/managedFields", []struct{}{{}}}
	data := make(map[string]string)
	adds := []operation{strip}
	for key, text := range write {
		name := encode(key)
		if len(name) > maxKey {
			return false, fmt.Errorf("%w: the key %q is longer than the %d bytes that a ConfigMap allows: "+
				"use a shorter prefix", workers.ErrRefused, name, maxKey)
		}
		data[name] = text
		adds = append(adds, operation{"add", "/data/" + name, text})
	}
	whole := []operation{{"test", "/metadata/uid", uid}, {"test", "/data", nil}, strip, {"add", "/data", data}}
	patch = append(patch, adds...)
	for range tries {
		if _, err = s.write(ctx, http.MethodPatch, patch); !failedTest(err) {
			return err == nil, err
		}
		// The API server does not say which test failed, or that an operation did.
		o, readErr := s.read(ctx)
		if readErr != nil {
			return false, readErr
		}
		for key, text := range have {
			if o.Data[encode(key)] != text {
				return false, nil
			}
		}
		if o.Data == nil { // without it, no key can be added
			patch = whole
		}
	}
	return false, err
}

// Clocks returns how far now (in milliseconds since 1970) is certainly ahead of the clock of the
// API server that answers; negative means behind. It allows for the time that the answer took,
// and for its date having only whole seconds.
func (s *Store) Clocks(ctx context.Context, now func() uint64) []time.Duration {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return answers.Clocks([]resource{leases}, time.Second, now, func(r resource) time.Time {
		got, _ := s.send(ctx, http.MethodGet, r, s.name, nil) // errors have a date too
		return got.date
	})
}

// encode returns the name of a key in the ConfigMap, which may have only letters, digits, "-", "_"
// and ".". A slash becomes a dot, and other bytes become "_" and two hexadecimal digits.
func encode(key string) string {
	var name strings.Builder
	for i := range len(key) {
		switch b := key[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '-':
			name.WriteByte(b)
		case b == '/' && i > 0: // a name may not begin with two dots
			name.WriteByte('.')
		default:
			fmt.Fprintf(&name, "_%02x", b)
		}
	}
	return name.String()
}

// decode is the inverse of encode. It returns false for names that encode never returns.
func decode(name string) (key string, ok bool) {
	key, _ = url.PathUnescape(strings.NewReplacer(".", "/", "_", "%").Replace(name)) // empty on an error
	return key, encode(key) == name
}
