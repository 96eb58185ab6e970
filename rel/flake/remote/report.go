package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/node/etf"
)

// Report returns a node's report, and an error if the node is not ready. If not even its
// readiness is known, the report is nil.
func (w *Choice) Report(ctx context.Context, cfg config.Config, stderr io.Writer) (*idhttp.Report, error) {
	web, err := w.Web(cfg.HTTP, fixedHTTP(cfg.HTTP))
	switch {
	case err != nil:
		return nil, err
	case web == nil:
		return reportOfNode(ctx, cfg)
	}
	defer web.Door.Close()
	return web.Report(ctx, stderr)
}

// Report first asks whether the node is ready, since the node answers this question even if it is
// busy or the token is wrong.
func (w *Web) Report(ctx context.Context, stderr io.Writer) (*idhttp.Report, error) {
	_, err := w.get(ctx, "readyz")
	if not, _ := errors.AsType[refused](err); not.status == http.StatusServiceUnavailable {
		err = fmt.Errorf("not ready: %s", not.detail)
	} else if err != nil {
		return nil, err
	}
	r := &idhttp.Report{Ready: err == nil}
	body, untold := w.get(ctx, "v1/info")
	if untold == nil {
		untold = json.Unmarshal(body, r)
	}
	if untold != nil {
		fmt.Fprintf(stderr, "flake: only the node's readiness is known: %s\n", escape.Text(untold.Error()))
	}
	return r, err
}

// reportOfNode gets the report over the Erlang distribution.
func reportOfNode(ctx context.Context, cfg config.Config) (*idhttp.Report, error) {
	node, err := NewNode(cfg.Node)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	r := &idhttp.Report{Node: cfg.Node.Name, Ready: true}
	names := []string{"flake"}
	for _, g := range cfg.Generators {
		names = append(names, g.Name)
	}
	var notReady error
	for _, name := range names {
		g := idhttp.GeneratorReport{Name: name}
		if err := describe(ctx, node, &g, r); err != nil {
			return nil, err
		}
		if r.Generators = append(r.Generators, g); !g.Ready && r.Ready {
			r.Ready, notReady = false, escape.Err(fmt.Errorf("not ready: generator %s: %s", name, g.Reason))
		}
	}
	return r, notReady
}

// describe reads a generator's properties and gets an id to see whether the generator can make one.
func describe(ctx context.Context, node *client.Node, g *idhttp.GeneratorReport, r *idhttp.Report) error {
	err := ReadInfo(ctx, node, g.Name, g, r)
	if errors.Is(err, client.ErrNoProcess) {
		g.Reason = "noproc"
		return nil
	}
	if err != nil {
		return err
	}
	answer, err := node.Call(ctx, etf.Atom(g.Name), etf.Atom("get"))
	g.Reason = "no id"
	if t, ok := answer.(etf.Tuple); ok && len(t) == 2 {
		if reason, ok := t[1].(etf.Atom); ok {
			g.Reason = string(reason)
		} else if t[0] == etf.Atom("ok") {
			g.Ready, g.Reason = true, ""
		}
	}
	return err
}

// ReadInfo reads a generator's properties, which have the same names as the report's fields.
func ReadInfo(ctx context.Context, node *client.Node, generator string, into ...any) error {
	info, err := node.Call(ctx, etf.Atom(generator), etf.Atom("info"))
	if err != nil {
		return err
	}
	list, ok := info.(etf.List)
	properties := make(map[etf.Atom]etf.Term)
	for _, p := range list {
		if p, ok := p.(etf.Tuple); ok && len(p) == 2 {
			if name, ok := p[0].(etf.Atom); ok {
				properties[name] = p[1]
			}
		}
	}
	text, err := json.Marshal(properties)
	for _, v := range into {
		err = cmp.Or(err, json.Unmarshal(text, v))
	}
	if !ok || err != nil {
		return fmt.Errorf("%s does not describe itself: it is an older flake, or another program", generator)
	}
	return nil
}
