package etcd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/httperr"
	"github.com/flake-go/flake/internal/switching"
)

// reply has the fields of all kinds of answers. An answer leaves out fields that are zero.
type reply struct {
	Header struct {
		Cluster  uint64 `json:"cluster_id,string"`
		Revision uint64 `json:"revision,string"` // never zero
		Term     uint64 `json:"raft_term,string"`
	}
	Token     string
	Succeeded bool
	Responses []struct {
		Range struct{ Kvs []pair } `json:"response_range"`
	}
	Message string // text of an error

	pairs map[string]string // pairs in a list; nil for other calls
	date  time.Time         // when the answer was written, in whole seconds
}

type pair struct{ Key, Value []byte }

// pathRange is the path for lists. Only answers with a list may be longer than maxAnswer.
const pathRange = "kv/range"

var errLong = errors.New("its answer is too long")

// text reads the text of an answer: at most left bytes, and nothing after ctx is done.
type text struct {
	ctx  context.Context
	body io.Reader
	left int
	err  error // the first error other than io.EOF
}

func (t *text) Read(b []byte) (n int, err error) {
	switch err = t.ctx.Err(); {
	case t.left == 0:
		err = fmt.Errorf("%w: more than %d bytes", errLong, maxAnswer)
	case err == nil:
		n, err = t.body.Read(b[:min(len(b), t.left)])
		t.left -= n
	}
	if err != io.EOF {
		t.err = err
	}
	return n, err
}

// decode decodes an answer while it arrives. It decodes a list one pair at a time.
func (r *reply) decode(t *text) error {
	d := json.NewDecoder(t)
	if err := next(d, json.Delim('{')); err != nil {
		return err
	}
	fields := map[json.Token]any{
		"header": &r.Header, "token": &r.Token, "succeeded": &r.Succeeded, "responses": &r.Responses, "message": &r.Message,
	}
	for d.More() {
		name, err := d.Token()
		switch into, known := fields[name]; {
		case err != nil:
		case name == "kvs" && r.pairs != nil:
			err = r.decodePairs(d, t)
		case known:
			err = d.Decode(into)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	if err := next(d, json.Delim('}')); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.Join(errors.New("more than an object"), err)
	}
	return nil
}

func (r *reply) decodePairs(d *json.Decoder, t *text) error {
	if err := next(d, json.Delim('[')); err != nil {
		return err
	}
	for n := 0; d.More(); n++ {
		t.left = maxAnswer // for each pair
		var kv pair
		if err := d.Decode(&kv); err != nil {
			return err
		}
		switch {
		case n == maxPairs:
			return fmt.Errorf("%w: more than %d keys", errLong, maxPairs)
		case max(len(kv.Key), len(kv.Value)) > maxText:
			return fmt.Errorf("%w: a key or a value of more than %d bytes", errLong, maxText)
		case d.InputOffset() > maxList:
			return fmt.Errorf("%w: a list of more than %d bytes", errLong, maxList)
		}
		r.pairs[string(kv.Key)] = string(kv.Value)
	}
	return next(d, json.Delim(']'))
}

func next(d *json.Decoder, want json.Token) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v, not %v", got, want)
	}
	return err
}

var (
	errToken  = errors.New("the token is invalid")
	errNoAuth = errors.New("etcd has no users")
)

// These are the reasons why etcd refuses a user. Each wraps [workers.ErrRefused] and is
// followed by etcd's text.
var (
	ErrPermission = fmt.Errorf("%w", workers.ErrRefused) // the user may not read or write a key
	ErrPassword   = fmt.Errorf("%w", workers.ErrRefused) // the password is wrong, or there is no such user
	ErrNoUser     = fmt.Errorf("%w", workers.ErrRefused) // no user is configured, but etcd requires one
)

// errs maps etcd's error messages to errors, for the messages that need handling. etcd's client
// knows the same ones. etcd returns all of them before it writes.
var errs = map[string]error{
	"etcdserver: permission denied":             ErrPermission,
	"etcdserver: authentication failed":         ErrPassword,
	"etcdserver: user name is empty":            ErrNoUser,
	"etcdserver: authentication is not enabled": errNoAuth,
	"etcdserver: invalid auth token":            errToken,
	"etcdserver: revision of auth store is old": errToken,
	// These answers are not JSON. In this order, they mean: etcd has no gateway; the client
	// certificate has a name although etcd has users; etcd does not accept the host.
	"404 Not Found": fmt.Errorf("%w: it has no JSON gateway; start it with --enable-grpc-gateway",
		workers.ErrRefused),
	"CommonName of client":         workers.ErrRefused,
	"Host header was unrecognized": workers.ErrRefused,
}

// ask sends a request to an endpoint, with the user's token if a user is configured. After an
// error, sent reports whether the request may have arrived.
func (s *Store) ask(ctx context.Context, url, path string, message object) (got reply, sent bool, err error) {
	u, err := s.authenticated()
	if err != nil {
		return reply{}, false, err
	}
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
		if errors.Is(err, errToken) || errors.Is(err, io.EOF) { // some releases give no reason: etcd's issues 15256, 20332
			u.token.Store(nil)
		}
		if again || !errors.Is(err, errToken) {
			return got, sent, err
		}
	}
}

func (s *Store) post(
	ctx context.Context, url, path string, token *string, message object,
) (got reply, sent bool, err error) {
	body, _ := json.Marshal(message) // strings and bytes can always be encoded
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/"+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, false, err
	}
	// Make a member that is cut off from the other members fail immediately.
	request.Header.Set("Grpc-Metadata-hasleader", "true")
	if token != nil {
		request.Header.Set("Authorization", *token)
	}
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return reply{}, sent, httperr.Explain(err, sent)
	}
	if err := switching.Refuse(response); err != nil {
		return reply{}, true, err
	}
	defer response.Body.Close()
	got.date, _ = http.ParseTime(response.Header.Get("Date"))
	if path == pathRange {
		got.pairs = make(map[string]string)
	}
	arriving := bufio.NewReader(response.Body)
	begin, _ := arriving.Peek(maxShown) // decode meets the same error
	said := fmt.Sprintf("an answer that is not etcd's: %s: %q", response.Status, begin)
	text := &text{ctx: ctx, body: arriving, left: maxAnswer}
	bad := got.decode(text)
	switch {
	case errors.Is(bad, errLong):
		return reply{}, true, bad
	case text.err != nil:
		return reply{}, true, httperr.Explain(fmt.Errorf("its answer is cut off: %w", text.err), true)
	case bad == nil && response.StatusCode == http.StatusOK && got.Header.Revision != 0:
		return got, true, nil
	case bad == nil && got.Message != "":
		said = fmt.Sprintf("%.*s", maxShown, got.Message)
	}
	for known, err := range errs {
		if strings.Contains(said, known) {
			return got, true, fmt.Errorf("%w: %s", err, said)
		}
	}
	return got, true, errors.New(said)
}
