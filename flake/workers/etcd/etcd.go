// Package etcd is etcd as the store of package workers: three calls of its API
// version 3, by go.etcd.io/etcd/client/v3.
//
// Reads are linearizable. The client repeats no write by itself once it may have been
// heard; of an error of a write nothing follows, whatever it says: a timeout, that the
// leader changed or that there is none may all come of one that happened, or will.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/flake-go/flake/flake/workers"
)

const (
	// The connection to an endpoint that does not answer is given up so soon.
	aliveEvery = 3 * time.Second
	aliveAfter = 3 * time.Second
)

// Config says where etcd is, and who we are.
type Config struct {
	Endpoints []string    // host:port, with http:// or https:// before it or not
	TLS       *tls.Config // nil: without
	User      string      // "": nobody
	Password  string
}

// Store is a [workers.Store]. Close it when done.
type Store struct {
	config clientv3.Config

	mu     sync.Mutex
	client *clientv3.Client // nil: not yet; with a user it is made of an answer
}

// New returns a store that connects when it is needed.
func New(c Config) (*Store, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("flake: no endpoint of etcd")
	}
	return &Store{config: clientv3.Config{
		Endpoints: c.Endpoints, TLS: c.TLS, Username: c.User, Password: c.Password,
		DialKeepAliveTime: aliveEvery, DialKeepAliveTimeout: aliveAfter,
		Logger: zap.NewNop(),
	}}, nil
}

// connect gives the client, and a context for a call.
func (s *Store) connect(ctx context.Context) (*clientv3.Client, context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		config := s.config
		if until, ok := ctx.Deadline(); ok {
			config.DialTimeout = time.Until(until)
		}
		client, err := clientv3.New(config)
		if err != nil {
			return nil, nil, s.explain(err)
		}
		s.client = client
	}
	// A member that is cut off from the others is to say so at once.
	return s.client, clientv3.WithRequireLeader(ctx), nil
}

// List implements [workers.Store].
func (s *Store) List(ctx context.Context, prefix string) (map[string]string, error) {
	c, ctx, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	got, err := c.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, s.explain(err)
	}
	all := make(map[string]string, len(got.Kvs))
	for _, kv := range got.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all, nil
}

// Get implements [workers.Store].
func (s *Store) Get(ctx context.Context, keys ...string) ([]string, error) {
	c, ctx, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	var ops []clientv3.Op
	for _, key := range keys {
		ops = append(ops, clientv3.OpGet(key))
	}
	got, err := c.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, s.explain(err)
	}
	texts := make([]string, len(keys))
	for i, response := range got.Responses {
		for _, kv := range response.GetResponseRange().Kvs {
			texts[i] = string(kv.Value)
		}
	}
	return texts, nil
}

// Swap implements [workers.Store].
func (s *Store) Swap(ctx context.Context, have map[string]string, key, value string) (bool, error) {
	c, ctx, err := s.connect(ctx)
	if err != nil {
		return false, err
	}
	var compare []clientv3.Cmp
	for key, text := range have {
		if text == "" { // a value cannot be compared where there is none
			compare = append(compare, clientv3.Compare(clientv3.CreateRevision(key), "=", 0))
		} else {
			compare = append(compare, clientv3.Compare(clientv3.Value(key), "=", text))
		}
	}
	done, err := c.Txn(ctx).If(compare...).Then(clientv3.OpPut(key, value)).Commit()
	if err != nil {
		return false, s.explain(err)
	}
	return done.Succeeded, nil
}

// explain says where an error comes from, and whether it is of use to ask again.
func (s *Store) explain(err error) error {
	of := rpctypes.Error(err)
	var untrusted *tls.CertificateVerificationError
	if errors.Is(err, context.DeadlineExceeded) { // the client does not say why
		err = errors.Join(errNoAnswer, s.reach())
	}
	err = fmt.Errorf("etcd at %s: %w", strings.Join(s.config.Endpoints, ", "), err)
	var known rpctypes.EtcdError
	switch {
	case errors.As(err, &untrusted):
		return fmt.Errorf("%w: %w", workers.ErrRefused, err)
	case !errors.As(of, &known):
	case known.Code() == codes.PermissionDenied, errors.Is(of, rpctypes.ErrAuthFailed), errors.Is(of, rpctypes.ErrUserEmpty),
		errors.Is(of, rpctypes.ErrAuthNotEnabled):
		return fmt.Errorf("%w: %w", workers.ErrRefused, err)
	}
	return err
}

var errNoAnswer = errors.New("no answer in time")

// reach tells why the first endpoint that cannot be reached cannot.
func (s *Store) reach() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, endpoint := range s.config.Endpoints {
		_, host, isURL := strings.Cut(endpoint, "://")
		if !isURL {
			host = endpoint
		}
		var c net.Conn
		var err error
		if s.config.TLS != nil || strings.HasPrefix(endpoint, "https:") {
			c, err = (&tls.Dialer{Config: s.config.TLS}).DialContext(ctx, "tcp", host)
		} else {
			c, err = (&net.Dialer{}).DialContext(ctx, "tcp", host)
		}
		if err != nil {
			return err
		}
		c.Close()
	}
	return nil
}

// Close ends the connections.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}
