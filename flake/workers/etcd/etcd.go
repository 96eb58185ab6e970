// Package etcd is etcd, 3.4 or later, as the store of package workers: four calls of its
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/internal/escape"
)

const (
	longest = 15 * time.Second // a call, if its context ends later or never
	connect = 5 * time.Second  // to connect, and as long again for TLS

	maxAnswer = 64 << 10 // an answer; of a list, what is decoded at a time
	maxList   = 32 << 20
	maxPairs  = 1<<16 + 1<<10 // of a list: numbers have 16 bits
	maxText   = 1 << 10       // a key or a value of a list
	maxShown  = 400           // of what an answer says, in an error
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

	mu      sync.Mutex
	history history
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

// object is a message to etcd. Bytes become base64 in it.
type object map[string]any

// List implements [workers.Store], for a prefix that ends with a byte below 0xff.
func (s *Store) List(ctx context.Context, prefix string) (map[string]string, error) {
	end := []byte(prefix)
	end[len(end)-1]++ // the first key behind all of them
	got, err := s.call(ctx, read, pathRange, object{"key": []byte(prefix), "range_end": end})
	return got.pairs, err
}

// Get implements [workers.Store].
func (s *Store) Get(ctx context.Context, keys ...string) ([]string, error) {
	var ops []object
	for _, key := range keys {
		ops = append(ops, object{"request_range": object{"key": []byte(key)}})
	}
	got, err := s.call(ctx, read, "kv/txn", object{"success": ops})
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
	got, err := s.call(ctx, write, "kv/txn", object{"compare": compare, "success": []object{put}})
	return got.Succeeded, err
}

// Cluster returns the id of the cluster, in hexadecimal as etcdctl shows it. It is that of the
// first answer: of another cluster no answer is taken, and if no other endpoint answers, the
// error of a call wraps [workers.ErrRefused].
func (s *Store) Cluster(ctx context.Context) (string, error) {
	got, err := s.call(ctx, local, status, object{})
	if err != nil {
		return "", err
	}
	return hex(got.Header.Cluster), nil
}

// Clocks asks all endpoints at the same time, and returns how far now, in milliseconds since
// 1970, is ahead of the clock of each that answers, rounded toward zero: by what the answer
// took, and as etcd tells whole seconds.
func (s *Store) Clocks(ctx context.Context, now func() uint64) (ahead []time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, endpoint := range s.config.Endpoints {
		wg.Go(func() {
			asked := time.UnixMilli(int64(now()))
			got, _, _ := s.post(ctx, endpoint, status, s.user.Load().token.Load(), object{}) // errors have a date, too
			answered := time.UnixMilli(int64(now()))
			if got.date.IsZero() {
				return
			}
			least, most := asked.Sub(got.date.Add(time.Second)), answered.Sub(got.date)
			mu.Lock()
			defer mu.Unlock()
			ahead = append(ahead, max(least, min(most, 0)))
		})
	}
	wg.Wait()
	return ahead
}

// status is what a member says of itself, to everybody.
const status = "maintenance/status"

// kind is what a call asks for.
type kind int

const (
	local kind = iota // what one member knows
	read              // what the cluster has
	write
)

// call asks one endpoint after the other until one answers. Each gets half of the time
// that is left, the last all of it.
func (s *Store) call(ctx context.Context, kind kind, path string, message object) (reply, error) {
	all, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	until, _ := all.Deadline()
	count, begin := len(s.config.Endpoints), int(s.first.Load())
	var failed error
	for tried := range count {
		i := (begin + tried) % count
		endpoint := s.config.Endpoints[i]
		before, err := s.before()
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
		stop := sent && (kind == write || errors.Is(err, workers.ErrRefused))
		if err == nil {
			err = s.note(before, endpoint, kind, got)
		}
		if err == nil {
			return got, nil
		}
		s.first.Store(int64(i+1) % int64(count))
		failed = errors.Join(failed, fmt.Errorf("etcd at %s: %w", endpoint, escape.Err(err)))
		if stop || all.Err() != nil {
			break
		}
	}
	return reply{}, failed
}
