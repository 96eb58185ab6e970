package etcd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"time"

	"github.com/flake-go/flake/flake/workers"
)

// reply is what is of interest in all answers. What is zero is left out of them.
type reply struct {
	Header struct {
		Cluster  uint64 `json:"cluster_id,string"`
		Revision uint64 `json:"revision,string"` // never zero
		Term     uint64 `json:"raft_term,string"`
	}
	Token     string
	Succeeded bool
	Kvs       []pair
	Responses []struct {
		Range struct{ Kvs []pair } `json:"response_range"`
	}
	Message string // of an error

	date time.Time // when it was written, in whole seconds
}

type pair struct{ Key, Value []byte }

var (
	errToken  = errors.New("the token is of no use")
	errNoAuth = errors.New("without users")
)

// errs are the errors that say what to do, by etcd's text, as its own client has them.
// All come before anything is written.
var errs = map[string]error{
	"etcdserver: permission denied":             workers.ErrRefused,
	"etcdserver: authentication failed":         workers.ErrRefused,
	"etcdserver: user name is empty":            workers.ErrRefused,
	"etcdserver: authentication is not enabled": errNoAuth,
	"etcdserver: invalid auth token":            errToken,
	"etcdserver: revision of auth store is old": errToken,
	// Not JSON: no gateway; a certificate with a name while etcd has users; a host that
	// etcd is not to be called by.
	"404 Not Found":                fmt.Errorf("%w: its JSON gateway is not there; start it with --enable-grpc-gateway", workers.ErrRefused),
	"CommonName of client":         workers.ErrRefused,
	"Host header was unrecognized": workers.ErrRefused,
}

// ask asks an endpoint, as the user if there is one. After an error, sent tells whether
// anything may have been heard.
func (s *Store) ask(ctx context.Context, url, path string, message object) (got reply, sent bool, err error) {
	u := s.user.Load()
	for again := false; ; again = true {
		if u.name != "" && u.token.Load() == nil {
			got, sent, err := s.post(ctx, url, "auth/authenticate", nil, object{"name": u.name, "password": u.password})
			switch {
			case err == nil:
				u.token.Store(&got.Token)
			case !errors.Is(err, errNoAuth):
				return reply{}, sent, err
			}
		}
		got, sent, err = s.post(ctx, url, path, u.token.Load(), message)
		if errors.Is(err, errToken) || errors.Is(err, io.EOF) { // some releases say nothing: etcd's issues 15256, 20332
			u.token.Store(nil)
		}
		if again || !errors.Is(err, errToken) {
			return got, sent, err
		}
	}
}

func (s *Store) post(ctx context.Context, url, path string, token *string, message object) (got reply, sent bool, err error) {
	body, err := json.Marshal(message)
	if err != nil {
		return reply{}, false, err
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/"+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, false, err
	}
	// A member that is cut off from the others is to say so at once.
	request.Header.Set("Grpc-Metadata-hasleader", "true")
	if token != nil {
		request.Header.Set("Authorization", *token)
	}
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return reply{}, sent, explain(err, sent)
	}
	defer response.Body.Close()
	got.date, _ = http.ParseTime(response.Header.Get("Date"))
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return reply{}, true, explain(fmt.Errorf("its answer is cut off: %w", err), true)
	case len(text) > maxAnswer:
		return reply{}, true, fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	}
	bad := json.Unmarshal(text, &got)
	if bad == nil && response.StatusCode == http.StatusOK && got.Header.Revision != 0 {
		return got, true, nil
	}
	said := cmp.Or(got.Message, fmt.Sprintf("an answer that is not etcd's: %s: %.400q", response.Status, text))
	for known, err := range errs {
		if strings.Contains(said, known) {
			return got, true, fmt.Errorf("%w: %s", err, said)
		}
	}
	return got, true, errors.New(said)
}

// explain says more of an error of net/http.
func explain(err error, sent bool) error {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return fmt.Errorf("%w: %w", workers.ErrRefused, err)
	case errors.Is(err, context.DeadlineExceeded) && sent:
		return errors.New("no answer in time")
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no connection in time")
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("it has ended the connection: %w", err)
	}
	return err
}
