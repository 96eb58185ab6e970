package client

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/internal/switching"
)

// maxIdle limits the idle connections that are kept open.
const maxIdle = 64

// HTTPOptions configure NewHTTP. The zero value suits a node on this machine.
type HTTPOptions struct {
	// Token is the bearer token, if the node requires one.
	Token string
	// Client makes the requests. Nil means a client without a timeout; the context limits
	// each call. If its CheckRedirect is nil, redirects are not followed, because net/http
	// would send the token to other ports of the same host. A node sends no redirects.
	Client *http.Client
}

// HTTP is a node that is called over HTTP.
type HTTP struct {
	base   *url.URL
	token  string
	client http.Client
	closed atomic.Bool
}

var _ Door = (*HTTP)(nil)

// NewHTTP returns the node at a URL such as http://127.0.0.1:8465. It does not connect to it.
func NewHTTP(base string, o HTTPOptions) (*HTTP, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, fmt.Errorf("URL %q: must be like http://127.0.0.1:8465", escape.URL(base))
	}
	h := &HTTP{base: u, token: o.Token}
	if o.Client != nil {
		h.client = *o.Client
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = maxIdle
		h.client.Transport = transport
	}
	if h.client.CheckRedirect == nil {
		h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return h, nil
}

// Close closes idle connections. The others close when their calls end.
func (h *HTTP) Close() error {
	h.closed.Store(true)
	h.client.CloseIdleConnections()
	return nil
}

func (h *HTTP) ask(ctx context.Context, r request) (a answer, err error) {
	method, path, accept := http.MethodPost, "v1/ids", "application/octet-stream" // as in flake's openapi.yaml
	query := url.Values{"generator": {r.generator}}
	switch r.verb {
	case askTexts:
		accept = "text/plain"
		query.Set("n", strconv.Itoa(r.n))
		query.Set("base", nameOf(r.base))
	case askLease:
		path = "v1/leases"
		query.Set("n", strconv.Itoa(r.n))
	case askNotional:
		method, path = http.MethodGet, "v1/notional"
		for i, milli := range r.millis {
			query.Set([]string{"from", "to"}[i], strconv.FormatUint(milli, 10))
		}
	case askDecompose:
		method, accept = http.MethodGet, "application/json"
		path += fmt.Sprintf("/%X", r.id)
		query.Set("base", "16")
	}
	u := h.base.JoinPath(path)
	u.RawQuery = query.Encode()
	body, err := h.do(ctx, method, u, accept)
	if err == nil {
		a, err = r.parse(body)
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w", u.Redacted(), escape.Err(err))
	}
	return a, nil
}

func (r request) parse(body []byte) (a answer, err error) {
	switch r.verb {
	case askOne:
		a.runs = []run{{body, 1}}
	case askTexts:
		a.texts = strings.Fields(string(body))
	case askLease:
		const count = 4 // size of the count that follows the first id
		size := r.format.Size
		for ; len(body) >= size+count; body = body[size+count:] {
			a.runs = append(a.runs, run{body[:size], int(binary.BigEndian.Uint32(body[size:]))})
		}
		if len(body) > 0 {
			return a, fmt.Errorf("the generator has another format: its ids are not %d bytes long", size)
		}
	case askNotional:
		for i := range r.millis {
			size := len(body) / (len(r.millis) - i)
			a.ids, body = append(a.ids, body[:size]), body[size:]
		}
	case askDecompose:
		var parts struct {
			Fields []struct {
				Name  string
				Value uint64 `json:",string"`
			}
		}
		err = json.Unmarshal(body, &parts)
		for _, f := range parts.Fields {
			a.fields = append(a.fields, Field{f.Name, f.Value})
		}
	}
	return a, err
}

func (h *HTTP) do(ctx context.Context, method string, u *url.URL, accept string) ([]byte, error) {
	if h.closed.Load() {
		return nil, net.ErrClosed
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	r.Header["Idempotency-Key"] = nil // not sent, but lets net/http repeat a request lost on a kept connection
	if h.token != "" {
		r.Header.Set("Authorization", "Bearer "+h.token)
	}
	answer, err := h.client.Do(r)
	if err != nil {
		return nil, lost(ctx, err)
	}
	if err := switching.Refuse(answer); err != nil {
		return nil, lost(ctx, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, lost(ctx, err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	case answer.StatusCode != http.StatusOK:
		return nil, problem(answer, body)
	}
	return body, nil
}

// lost returns the error of a request that has failed: ctx's error if ctx is done, otherwise err,
// which it wraps in ErrLost if the request may have been sent.
func lost(ctx context.Context, err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // without the URL, which ask adds
	}
	op, failed := errors.AsType[*net.OpError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed && op.Op == "dial", untrusted, errors.Is(err, http.ErrSchemeMismatch): // nothing was sent
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// problem returns the error in a refusal, which is a problem document (RFC 9457) in the form that
// openapi.yaml specifies.
func problem(answer *http.Response, body []byte) error {
	var p struct{ Detail, Reason string }
	if json.Unmarshal(body, &p) != nil || p.Detail == "" {
		return fmt.Errorf("the node answered %s", answer.Status)
	}
	if p.Reason == "" {
		return fmt.Errorf("the node answered %s: %s", answer.Status, p.Detail)
	}
	return fmt.Errorf("%w: %s", refusal(p.Reason), p.Detail)
}
