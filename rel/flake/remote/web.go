package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/internal/files"
	"github.com/flake-go/flake/internal/switching"
	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/credentials"
)

// Choice holds the flags that choose how to query a running node.
type Choice struct {
	over, url  *string
	preferHTTP bool
}

// NewChoice adds the flags. preferHTTP is for commands that work equally well over HTTP. They use HTTP if the
// configuration has an address for it, because HTTP needs no cookie and reveals no digest of one.
func NewChoice(f *cli.Flags, preferHTTP bool) Choice {
	usual := "over the distribution, unless -url is set"
	if preferHTTP {
		usual = "over HTTP if -url or http.listen says where"
	}
	return Choice{
		f.String("over", "", "ask over `erlang|http`, the distribution or HTTP; without it "+usual),
		f.String("url", "", "ask over HTTP, at a `URL` such as http://127.0.0.1:8465"),
		preferHTTP,
	}
}

// Web returns a client of the node's HTTP door if the flags or the configuration choose HTTP,
// otherwise nil.
func (w *Choice) Web(cfg config.HTTP) (*Web, error) {
	_, unset := urlOf(cfg)
	switch {
	case *w.over == "erlang" && *w.url != "":
		return nil, cli.UsageError(errors.New("-url is for -over http"))
	case *w.over == "http", *w.over == "" && (*w.url != "" || w.preferHTTP && unset == nil):
		return newWeb(cfg, *w.url)
	case *w.over != "" && *w.over != "erlang":
		return nil, cli.UsageError(fmt.Errorf("-over %s: must be erlang or http", *w.over))
	}
	return nil, nil
}

// Door returns the node's door that the flags choose.
func (w *Choice) Door(cfg config.Config) (client.Door, error) {
	web, err := w.Web(cfg.HTTP)
	switch {
	case err != nil:
		return nil, err
	case web == nil:
		return NewNode(cfg.Node)
	}
	return web.Door, nil
}

// Report returns a node's report, and an error if the node is not ready. If not even its
// readiness is known, the report is nil.
func (w *Choice) Report(ctx context.Context, cfg config.Config, stderr io.Writer) (*idhttp.Report, error) {
	web, err := w.Web(cfg.HTTP)
	switch {
	case err != nil:
		return nil, err
	case web == nil:
		return reportOfNode(ctx, cfg)
	}
	defer web.Door.Close()
	return web.Report(ctx, stderr)
}

// Web is a client of a node's HTTP door.
type Web struct {
	URL, token string
	Client     *http.Client
	Door       client.Door // for its ids
}

// newWeb returns a client of the node's HTTP door at a URL or, if the URL is empty, at the address
// in the configuration.
func newWeb(cfg config.HTTP, at string) (w *Web, err error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	w = &Web{URL: at, Client: &http.Client{Transport: transport,
		// A node never redirects, and no other host may see the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if at == "" {
		if w.URL, err = urlOf(cfg); err != nil {
			return nil, cli.UsageError(err)
		}
		transport.Proxy = nil
		if cfg.TLS.On {
			if transport.TLSClientConfig, err = onlyOf(cfg.TLS.Cert); err != nil {
				return nil, cli.UsageError(err)
			}
		}
	}
	if u, err := url.Parse(at); err == nil && hereOnly(u.Hostname()) {
		transport.Proxy = nil
	}
	if w.token, err = credentials.Token(cfg.TokenFile); err != nil {
		return nil, cli.UsageError(err)
	}
	if w.Door, err = client.NewHTTP(w.URL, client.HTTPOptions{Token: w.token, Client: w.Client}); err != nil {
		return nil, cli.UsageError(fmt.Errorf("-url: %w", err))
	}
	return w, nil
}

// hereOnly reports whether a URL's host always means this machine, whatever the resolver answers.
// For some of these hosts, net/http would send the request, with its token, to the proxy that the
// environment names.
func hereOnly(name string) bool {
	ip, err := netip.ParseAddr(name)
	return host.IsLoopback(name) || strings.HasSuffix(strings.ToLower(name), ".localhost") ||
		err == nil && ip.IsUnspecified()
}

// urlOf returns the URL of the configured node, as seen from the node's machine. It fails if the port is not fixed.
func urlOf(cfg config.HTTP) (string, error) {
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil || port == "0" {
		return "", errors.New("HTTP needs -url, or http.listen with a port in the configuration")
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // for [::] too, because containers may lack ::1
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
	if cfg.TLS.On {
		u.Scheme = "https"
	}
	return u.String(), nil
}

// onlyOf returns settings that accept only the node's certificate, the first in a file. The names in it do not matter.
func onlyOf(file string) (*tls.Config, error) {
	text, err := files.PEM("http.tls.cert", file)
	if err != nil {
		return nil, err
	}
	first, _ := pem.Decode(text)
	if first == nil {
		return nil, fmt.Errorf("http.tls.cert %q: must be PEM", file)
	}
	return &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection verifies
		VerifyConnection: func(c tls.ConnectionState) error {
			if !bytes.Equal(c.PeerCertificates[0].Raw, first.Bytes) {
				return fmt.Errorf("the certificate is not the one in http.tls.cert, %q", file)
			}
			return nil
		},
	}, nil
}

// refused is an HTTP answer other than 200 OK.
type refused struct {
	status int
	detail string
}

func (r refused) Error() string { return fmt.Sprintf("the node answered %d: %s", r.status, r.detail) }

const maxReport = 1 << 20 // bytes

func (w *Web) get(ctx context.Context, path string) ([]byte, error) {
	at, err := url.JoinPath(w.URL, path)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	answer, err := w.Client.Do(r)
	if err == nil {
		err = switching.Refuse(answer)
	}
	if err != nil {
		return nil, escape.Err(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxReport))
	if err != nil || answer.StatusCode == http.StatusOK {
		return body, err
	}
	problem := struct{ Detail string }{http.StatusText(answer.StatusCode)}
	json.Unmarshal(body, &problem)
	return nil, refused{answer.StatusCode, escape.Text(problem.Detail)}
}

// Report gets the node's report. It first asks whether the node is ready, because a node that is busy,
// or gets a wrong token, answers only that.
func (w *Web) Report(ctx context.Context, stderr io.Writer) (*idhttp.Report, error) {
	_, err := w.get(ctx, "readyz")
	if answer, _ := errors.AsType[refused](err); answer.status == http.StatusServiceUnavailable {
		err = fmt.Errorf("not ready: %s", answer.detail)
	} else if err != nil {
		return nil, err
	}
	r := &idhttp.Report{Ready: err == nil}
	body, infoErr := w.get(ctx, "v1/info")
	if infoErr == nil {
		infoErr = json.Unmarshal(body, r)
	}
	if infoErr != nil {
		fmt.Fprintf(stderr, "flake: only the node's readiness is known: %s\n", escape.Text(infoErr.Error()))
	}
	return r, err
}
