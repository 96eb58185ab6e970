// Package etcd lets package workers use etcd, 3.4 or later, as its store. It makes four calls
// of etcd's API version 3, as JSON through [its gateway], with only net/http and no proxies.
//
// Reads are linearizable. An error from a write does not say whether etcd wrote: after a
// timeout, a change of the leader or a missing leader the write may have happened, or may
// still happen. So a write is sent to another endpoint only if there was no connection to the
// first. net/http must not repeat a write either. So each connection carries one request:
// shouldRetryRequest in net/http/transport.go does not repeat a request whose connection was new.
// Only requests that etcd refuses because of the user's token are sent again, with a new
// token; etcd checks the token before it writes.
//
// [its gateway]: https://etcd.io/docs/latest/dev-guide/api_grpc_gateway/
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/answers"
	"github.com/flake-go/flake/internal/escape"
)

const (
	longest = 15 * time.Second // time limit of a call without an earlier deadline
	connect = 5 * time.Second  // time limit for TCP, and again for TLS

	maxAnswer = 64 << 10 // bytes of an answer's header, and of its body or, in a list, of each pair
	maxList   = 32 << 20
	maxPairs  = 1<<16 + 1<<10 // pairs in a list; numbers have 16 bits
	maxText   = 1 << 10       // bytes of a key or a value in a list
	maxShown  = 400           // bytes of an answer that an error shows
)

// Config holds etcd's endpoints and the user to connect as.
type Config struct {
	Endpoints []string    // host:port, with or without http:// or https://
	TLS       *tls.Config // nil means the defaults, and TLS only for https:// endpoints

	// Login returns the user, which is empty if etcd has no users. It is called for each request.
	Login func() (user, password string, err error)
}

// Store is a [workers.Store]. It does not keep connections open.
type Store struct {
	endpoints []string // URLs
	transport *http.Transport
	first     atomic.Int64 // index of the endpoint to ask first: the one after the last to fail
	login     func() (user, password string, err error)
	user      atomic.Pointer[user] // the last that login returned
	history   history
}

type user struct {
	name, password string
	token          atomic.Pointer[string] // nil if one must be requested
}

// authenticated returns the user for a request. A user that is the same as before keeps its token.
func (s *Store) authenticated() (*user, error) {
	u := s.user.Load()
	if s.login == nil {
		return u, nil
	}
	name, password, err := s.login()
	if err == nil && (u.name != name || u.password != password) {
		u = &user{name: name, password: password}
		s.user.Store(u)
	}
	return u, err
}

// New returns a store. It does not connect yet.
func New(c Config) (*Store, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("flake: no etcd endpoints are configured")
	}
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
	}
	endpoints := slices.Clone(c.Endpoints)
	for i, e := range endpoints {
		if !strings.Contains(e, "://") {
			endpoints[i] = scheme + e
		}
	}
	t := &http.Transport{
		DialContext: (&net.Dialer{Timeout: connect}).DialContext, TLSHandshakeTimeout: connect,
		TLSClientConfig: c.TLS, Protocols: new(http.Protocols), DisableKeepAlives: true,
		MaxResponseHeaderBytes: maxAnswer,
	}
	t.Protocols.SetHTTP1(true)
	s := &Store{endpoints: endpoints, transport: t, login: c.Login}
	s.user.Store(new(user))
	return s, nil
}

// object is a message to etcd. In JSON, byte slices are in base64, as etcd expects.
type object map[string]any

// List implements [workers.Store]. The prefix must end with a byte below 0xff.
func (s *Store) List(ctx context.Context, prefix string) (map[string]string, error) {
	end := []byte(prefix)
	end[len(end)-1]++ // the first key after all keys with the prefix
	got, err := s.call(ctx, reads, pathRange, object{"key": []byte(prefix), "range_end": end})
	return got.pairs, err
}

// Get implements [workers.Store].
func (s *Store) Get(ctx context.Context, keys ...string) ([]string, error) {
	var ops []object
	for _, key := range keys {
		ops = append(ops, object{"request_range": object{"key": []byte(key)}})
	}
	got, err := s.call(ctx, reads, "kv/txn", object{"success": ops})
	if err != nil {
		return nil, err
	}
	if len(got.Responses) != len(keys) {
		return nil, fmt.Errorf("etcd answered %d of %d requests", len(got.Responses), len(keys))
	}
	texts := make([]string, len(keys))
	for i, response := range got.Responses {
		for _, kv := range response.Range.Kvs {
			texts[i] = string(kv.Value)
		}
	}
	return texts, nil
}

// Swap implements [workers.Store].
func (s *Store) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	var compare, puts []object
	for key, text := range have {
		if text == "" { // the value of a missing key cannot be compared
			compare = append(compare, object{"key": []byte(key), "target": "CREATE", "create_revision": "0"})
		} else {
			compare = append(compare, object{"key": []byte(key), "target": "VALUE", "value": []byte(text)})
		}
	}
	for key, text := range write {
		puts = append(puts, object{"request_put": object{"key": []byte(key), "value": []byte(text)}})
	}
	got, err := s.call(ctx, writes, "kv/txn", object{"compare": compare, "success": puts})
	return got.Succeeded, err
}

// Cluster returns the id of the cluster, in hexadecimal as etcdctl prints it. The first answer
// determines which cluster is used. Answers from any other cluster are refused; if no other
// endpoint answers, the call's error wraps [workers.ErrRefused].
func (s *Store) Cluster(ctx context.Context) (string, error) {
	got, err := s.call(ctx, local, status, object{})
	if err != nil {
		return "", err
	}
	return hex(got.Header.Cluster), nil
}

// Clocks asks all endpoints in parallel and returns, for each that answers, how far now (in
// milliseconds since 1970) is certainly ahead of the endpoint's clock; negative means behind.
// Clocks allows for the time that the answer took, and for its date having only whole seconds.
func (s *Store) Clocks(ctx context.Context, now func() uint64) []time.Duration {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return answers.Clocks(s.endpoints, time.Second, now, func(endpoint string) time.Time {
		got, _, _ := s.post(ctx, endpoint, status, s.user.Load().token.Load(), object{}) // errors have a date too
		return got.date
	})
}

// status is the path for querying a member's status. The query needs no permission.
const status = "maintenance/status"

type kind int

const (
	local  kind = iota // asks one member for its state
	reads              // from the cluster
	writes             // to the cluster
)

// EndpointError is the error of a call to one endpoint.
type EndpointError struct {
	Endpoint string
	Err      error
}

func (e *EndpointError) Error() string { return fmt.Sprintf("etcd at %s: %v", e.Endpoint, e.Err) }
func (e *EndpointError) Unwrap() error { return e.Err }

// call asks one endpoint after another until one answers. Each endpoint gets half of the
// remaining time, and the last gets all of it.
func (s *Store) call(ctx context.Context, kind kind, path string, message object) (reply, error) {
	all, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	until, _ := all.Deadline()
	count, begin := len(s.endpoints), int(s.first.Load())
	var failed error
	for tried := range count {
		i := (begin + tried) % count
		endpoint := s.endpoints[i]
		before, err := s.history.Before()
		if err != nil {
			return reply{}, err
		}
		left := time.Until(until)
		if tried < count-1 {
			left /= 2
		}
		ctx, cancel := context.WithTimeout(all, left)
		got, sent, err := s.ask(ctx, endpoint, path, message)
		cancel()
		stop := sent && (kind == writes || errors.Is(err, workers.ErrRefused))
		if err == nil {
			err = s.note(before, endpoint, kind, got)
		}
		if err == nil {
			return got, nil
		}
		s.first.Store(int64(i+1) % int64(count))
		failed = errors.Join(failed, &EndpointError{endpoint, escape.Err(err)})
		if stop || all.Err() != nil {
			break
		}
	}
	return reply{}, failed
}
