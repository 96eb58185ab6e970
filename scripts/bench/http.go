package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The bare handler does only what package net/http requires to answer with as many bytes as an id
// has. It is this program, run with the argument bare.

const anID = "0000BCeSOTXmkQcK8Ru83s\n"

func serveBare() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr())
	log.Fatal(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Write([]byte(anID))
	})))
}

// httpConns are the numbers of wrk's connections. Each connection has one call in flight.
var httpConns = []int{1, 64}

// overHTTP measures the node and a bare handler with wrk.
func overHTTP(w *world, p plan) (rows []row, err error) {
	bare, err := w.bare()
	if err != nil {
		return nil, err
	}
	node, err := w.flakeHTTP()
	if err != nil {
		return nil, err
	}
	urls := [2]string{theirs: "http://" + bare.addr + "/", ours: "http://" + node.addr + "/v1/ids"}
	loads, err := inTurn(p.rounds, len(httpConns), 2, func(i, side int) (float64, error) {
		return w.wrk(urls[side], httpConns[i], p.http)
	})
	if err != nil {
		return nil, err
	}
	for i, conns := range httpConns {
		what := fmt.Sprintf("GET /v1/ids, %d connections", conns)
		rows = append(rows, compare("HTTP", what, "calls/s", "net/http",
			loads[i][theirs], loads[i][ours]).aim(atLeast(0.8)))
	}
	return rows, nil
}

// bare starts the bare handler.
func (w *world) bare() (*server, error) {
	s := &server{cmd: w.command(self, "bare")}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.run(s.cmd); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s.addr = strings.TrimSpace(line)
	return s, err
}

// flakeHTTP starts a node that serves HTTP at the server's addr.
func (w *world) flakeHTTP() (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	s := w.flake()
	s.cmd.Env = append(s.cmd.Environ(), "FLAKE_HTTP_LISTEN="+addr)
	_, err = w.start(s)
	s.addr = addr
	return s, err
}

var perSecond = regexp.MustCompile(`Requests/sec: +([0-9.]+)`)

// wrk returns wrk's calls per second.
func (w *world) wrk(url string, conns int, d time.Duration) (float64, error) {
	seconds := fmt.Sprintf("-d%ds", max(1, int(d.Seconds())))
	out, err := w.command("wrk", "-t1", fmt.Sprintf("-c%d", conns), seconds, url).CombinedOutput()
	rate := perSecond.FindSubmatch(out)
	if err != nil || rate == nil || strings.Contains(string(out), "Non-2xx") {
		return 0, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	return strconv.ParseFloat(string(rate[1]), 64)
}
