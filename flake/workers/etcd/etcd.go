// Package etcd is etcd, 3.4 or later, as the store of package workers: three calls of its
// API version 3, as JSON by [its gateway], with net/http alone. No proxy is used.
//
// Reads are linearizable. Of an error of a write nothing follows, whatever it says: a
// timeout, that the leader changed or that there is none may all come of one that
// happened, or will. So a write goes to another endpoint only if there was no connection
// to the one before, and net/http does not repeat it: a connection carries one request,
// and shouldRetryRequest of net/http/transport.go repeats none on a connection that is
// new. Only what is refused for the user's token, which etcd does before it writes
// anything, is sent again, with another.
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
)

const (
	longest = 15 * time.Second // a call, if its context ends later or never
	connect = 5 * time.Second  // to connect, and as long again for TLS

	maxAnswer = 64 << 20 // a list of 100,000 numbers takes about half of it
)

// Config says where etcd is, and who we are.
type Config struct {
	Endpoints []string    // host:port, with http:// or https:// before it or not
	TLS       *tls.Config // nil: without, but for https://
	User      string      // "": nobody
	Password  string
}

// Store is a [workers.Store]. It keeps no connection.
type Store struct {
	config    Config // its endpoints are URLs
	transport *http.Transport
	first     atomic.Int64 // the endpoint to begin with: it answered last, or comes behind one that did not
	user      atomic.Pointer[user]
	cluster   atomic.Pointer[string] // nil: nobody has answered yet
}

// user is who we are to etcd.
type user struct {
	name, password string
	token          atomic.Pointer[string] // nil: it is to be asked for
}

// SetUser changes the user of the calls that begin from now on.
func (s *Store) SetUser(name, password string) {
	if now := s.user.Load(); now == nil || now.name != name || now.password != password {
		s.user.Store(&user{name: name, password: password})
	}
}

// New returns a store that connects when it is needed.
func New(c Config) (*Store, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("flake: no endpoint of etcd")
	}
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
	}
	c.Endpoints = slices.Clone(c.Endpoints)
	for i, e := range c.Endpoints {
		if !strings.Contains(e, "://") {
			c.Endpoints[i] = scheme + e
		}
	}
	t := &http.Transport{
		DialContext: (&net.Dialer{Timeout: connect}).DialContext, TLSHandshakeTimeout: connect,
		TLSClientConfig: c.TLS, Protocols: new(http.Protocols), DisableKeepAlives: true,
	}
	t.Protocols.SetHTTP1(true)
	s := &Store{config: c, transport: t}
	s.SetUser(c.User, c.Password)
	return s, nil
}

// Cluster implements [workers.Clustered]. The id is a decimal number.
func (s *Store) Cluster() string {
	if id := s.cluster.Load(); id != nil {
		return *id
	}
	return ""
}

// Clocks implements [workers.Dated] by the Date of answers, which has whole seconds. It waits
// a second at most.
func (s *Store) Clocks(ctx context.Context, now func() uint64) (offsets []time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answers := make(chan *time.Duration, len(s.config.Endpoints))
	for _, url := range s.config.Endpoints {
		go func() { answers <- s.clock(ctx, url, now) }()
	}
	for range s.config.Endpoints {
		if offset := <-answers; offset != nil {
			offsets = append(offsets, *offset)
		}
	}
	return offsets
}

// clock returns how far now is ahead of the clock of an endpoint; nil: it does not answer.
func (s *Store) clock(ctx context.Context, url string, now func() uint64) *time.Duration {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/version", nil)
	if err != nil {
		return nil
	}
	asked := time.UnixMilli(int64(now()))
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return nil
	}
	response.Body.Close()
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return nil
	}
	most := time.UnixMilli(int64(now())).Sub(date)
	least := asked.Sub(date.Add(time.Second))
	offset := max(least, 0) + min(most, 0)
	return &offset
}

// object is a message to etcd. Bytes become base64 in it.
type object map[string]any

// List implements [workers.Store], for a prefix that ends with a byte below 0xff.
func (s *Store) List(ctx context.Context, prefix string) (map[string]string, error) {
	end := []byte(prefix)
	end[len(end)-1]++ // the first key behind all of them
	got, err := s.call(ctx, false, "kv/range", object{"key": []byte(prefix), "range_end": end})
	if err != nil {
		return nil, err
	}
	all := make(map[string]string, len(got.Kvs))
	for _, kv := range got.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all, nil
}

// Get implements [workers.Store].
func (s *Store) Get(ctx context.Context, keys ...string) ([]string, error) {
	var ops []object
	for _, key := range keys {
		ops = append(ops, object{"request_range": object{"key": []byte(key)}})
	}
	got, err := s.call(ctx, false, "kv/txn", object{"success": ops})
	if err != nil {
		return nil, err
	}
	if len(got.Responses) != len(keys) {
		return nil, fmt.Errorf("etcd has answered %d requests of %d", len(got.Responses), len(keys))
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
func (s *Store) Swap(ctx context.Context, have map[string]string, key, value string) (bool, error) {
	var compare []object
	for key, text := range have {
		if text == "" { // a value cannot be compared where there is none
			compare = append(compare, object{"key": []byte(key), "target": "CREATE", "create_revision": "0"})
		} else {
			compare = append(compare, object{"key": []byte(key), "target": "VALUE", "value": []byte(text)})
		}
	}
	put := object{"request_put": object{"key": []byte(key), "value": []byte(value)}}
	got, err := s.call(ctx, true, "kv/txn", object{"compare": compare, "success": []object{put}})
	return got.Succeeded, err
}

// call asks one endpoint after the other until one answers. Each gets half of the time
// that is left, the last all of it.
func (s *Store) call(ctx context.Context, write bool, path string, message object) (reply, error) {
	all, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	until, _ := all.Deadline()
	count, begin := len(s.config.Endpoints), int(s.first.Load())
	var failed error
	for tried := range count {
		i := (begin + tried) % count
		endpoint := s.config.Endpoints[i]
		left := time.Until(until)
		if tried < count-1 {
			left /= 2
		}
		ctx, cancel := context.WithTimeout(all, left)
		got, sent, err := s.ask(ctx, endpoint, path, message)
		cancel()
		if err == nil {
			return got, nil
		}
		s.first.Store(int64(i+1) % int64(count))
		failed = errors.Join(failed, fmt.Errorf("etcd at %s: %w", endpoint, err))
		if sent && (write || errors.Is(err, workers.ErrRefused)) || all.Err() != nil {
			break
		}
	}
	return reply{}, failed
}
