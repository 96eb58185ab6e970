package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/flakehttp"
	"github.com/flake-go/flake/flake/flakeserver"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
)

// server is all that runs.
type server struct {
	node    *node.Node
	ids     *flake.Durable
	release func() error // of the worker id
	worker  flake.Worker
	source  string // where the worker id is from
	cookie  string // where the cookie is from, if not from the file
	http    *door  // or nil
}

func start(ctx context.Context, cfg config.Config, stdout io.Writer, log *slog.Logger) (*server, error) {
	worker, source, err := worker(cfg.Flake)
	if err != nil {
		return nil, err
	}
	secured, err := secure(cfg.Node, log)
	if err != nil {
		return nil, err
	}
	saves := flakehttp.NewSaves()
	ids, err := flake.Open(ctx, cfg.Flake.TimestampPath, worker, flake.Options{
		AllowableDowntime: cfg.Flake.AllowableDowntime,
		Logger:            log,
		Saved:             saves.Observe,
	})
	if err != nil {
		return nil, err
	}
	release, err := claim(worker)
	if err != nil {
		return nil, errors.Join(err, ids.Close())
	}
	flakes := &flakeserver.Server{IDs: flakeserver.Flake(ids), Log: log, Version: version, Started: time.Now()}
	// Not ctx: the end of that is the order to stop, which is carried out in good order.
	n, err := node.Start(context.WithoutCancel(ctx), node.Options{
		Name:        cfg.Node.Name,
		Cookie:      cfg.Node.Cookie,
		Listen:      cfg.Node.Listen,
		EPMD:        epmd.Mode(cfg.Node.EPMD),
		NetTicktime: cfg.Node.NetTicktime,
		TLS:         secured,
		Supervisors: []node.Supervisor{{Name: "flake_sup", Module: "flake_sup", Servers: []node.Server{
			{Name: "flake", Module: "flake_server", Handler: flakes},
			{Name: "persistent_timer", Module: "persistent_timer", Handler: flakeserver.Timer{IDs: ids}},
		}}},
		Functions: flakes.Functions(flakeserver.Surroundings{
			Config: originalConfig(cfg.Flake),
			Output: stdout,
		}),
		Log: log,
	})
	if err != nil {
		return nil, errors.Join(err, ids.Close(), release())
	}
	s := &server{
		node: n, ids: ids, worker: worker, source: source, release: release, cookie: cfg.Node.CookieFrom,
	}
	s.http, err = openDoor(cfg.HTTP, log, flakehttp.Options{
		Generators: []flakehttp.Generator{{Name: "flake", Server: flakes, Saves: saves}},
		Node:       surroundings(n),
	})
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.http.serve()
	return s, nil
}

func worker(cfg config.Flake) (w flake.Worker, source string, err error) {
	if cfg.WorkerID != nil {
		w, err = flake.ParseWorker(cfg.WorkerID.String())
		return w, "worker_id", err
	}
	w, name, err := flake.InterfaceWorker(cfg.Interface)
	return w, "interface " + name, err
}

// originalConfig gives the settings by the names of the original's sys.config.
func originalConfig(cfg config.Flake) map[etf.Atom]etf.Term {
	settings := map[etf.Atom]etf.Term{
		"timestamp_path":     etf.String(cfg.TimestampPath),
		"allowable_downtime": cfg.AllowableDowntime.Milliseconds(),
	}
	if cfg.Interface != "" {
		settings["interface"] = etf.String(cfg.Interface)
	}
	return settings
}

func (s *server) announce(w io.Writer) {
	fmt.Fprintf(w, "%s hands out ids\n", s.node.Name())
	fmt.Fprintf(w, "  worker id  %s (%s)\n", s.worker, s.source)
	fmt.Fprintf(w, "  address    %s\n", s.node.Addr())
	if s.cookie != "" {
		fmt.Fprintf(w, "  cookie     from %s\n", s.cookie)
	}
	fmt.Fprintf(w, "  EPMD       %s\n", s.node.EPMD())
	s.http.announce(w)
}

// stop ends HTTP and the node, then the generator, whose last time is then exact.
func (s *server) stop() error {
	s.http.stop()
	s.node.Stop()
	return errors.Join(s.ids.Close(), s.release())
}
