package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// benched runs bench. If the machine was too busy for any call to end, benched runs it again for longer.
func benched(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	for _, duration := range []string{"50ms", "1s", "20s"} {
		stdout, stderr, status = called(t, append([]string{"bench", "-duration", duration}, args...)...)
		if !idle.MatchString(stdout) {
			break
		}
	}
	return stdout, stderr, status
}

var idle = regexp.MustCompile(`calls    0 in .*\n(.*\n)*errors   none\n|"calls":0,.*"errors":{}`)

// bench puts load on a node through either door, and its output states the settings and the results.
func TestBench(t *testing.T) {
	listen, url := onHTTP(t)
	s, _ := startHere(t, listen)
	defer s.Stop()
	file := writeConfig(t, "[node]\nname = %q\ncookie = %q\n", nodeName, cookie)
	url = strings.TrimSuffix(url, "/")
	for args, want := range map[string]string{
		"-callers 4": nodeName + ` over erlang, generator flake \(flake\); callers 4, ` +
			`connections 1, ids a call 1`,
		"-callers 4 -connections 2 -ids 500": nodeName + ` over erlang, generator flake \(flake\); callers 4, ` +
			`connections 2, ids a call 500`,
		"-callers 1 -connections 3 -base 62 -ids 3": nodeName + ` over erlang, generator flake \(flake\); callers 1, ` +
			`connections 1, ids a call 3`,
		"-callers 3 -url " + url + " -rate 1000": url + ` over http, generator flake \(flake\); callers 3, ` +
			`connections 3, ids a call 1`,
	} {
		args := append([]string{"-config", file}, strings.Fields(args)...)
		out, errs, status := benched(t, args...)
		text := regexp.MustCompile(`^` + want + `\ncalls    [1-9]\d* in [0-9.]+ s, [1-9]\d* a second\nids      ` +
			`[1-9]\d*, [1-9]\d* a second\n` +
			`latency  p50 \S+s, p90 \S+s, p99 \S+s, p99.9 \S+s, max \S+s\nerrors   none\ntwice    0 of [1-9]\d* ` +
			`ids\n(note .*\n)*$`)
		if status != 0 || errs != "" || !text.MatchString(out) {
			t.Errorf("%q: exit status %d, %q,\n%s", args, status, errs, out)
		}
		out, _, status = benched(t, append(args, "-json")...)
		var r struct {
			Calls, IDs, Compared, Twice uint64
			IDsPerCall                  uint64           `json:"ids_per_call"`
			Latency                     map[string]int64 `json:"latency_us"`
			Seconds                     float64
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 || r.Calls == 0 ||
			r.IDs != r.Calls*r.IDsPerCall ||
			r.Compared < r.IDs || r.Twice != 0 || len(r.Latency) != 5 || r.Latency["max"] == 0 || r.Seconds <= 0 {
			t.Errorf("%q: exit status %d, %v, %s", args, status, err, out)
		}
	}
	for args, want := range map[string]string{
		"-generator none":           "no process is registered under that name",
		"-url " + url + " -n 1":     "flag provided but not defined: -n",
		"-callers 0":                "-callers 0: must be 1 to 10000",
		"-callers 10001":            "-callers 10001: must be 1 to 10000",
		"-connections 1001":         "-connections 1001: must be 1 to 1000",
		"-ids 1048577":              "-ids 1048577: must be 1 to 1048576",
		"-base 1":                   "-base 1: must be 2 to 62, or canonical",
		"-duration 0":               "-duration 0s: must be more than 0",
		"-rate -1":                  "-rate -1: must be 0 to 1e9",
		"-rate NaN":                 "-rate NaN: must be 0 to 1e9",
		"-over tcp":                 "-over tcp: must be erlang or http",
		"-over http":                "needs -url",
		"-generator x -url " + url:  "the node has no generator x",
		"-url http://127.0.0.1:1/x": "connection refused",
	} {
		_, errs, status := called(t, append([]string{"bench", "-config", file}, strings.Fields(args)...)...)
		if status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit status %d, %q, want %q", args, status, errs, want)
		}
	}
}

// The exit status is 1 for a node that repeats an id, and for a node that answers no call. Errors are counted.
func TestBenchFails(t *testing.T) {
	bench := func(ids func(w http.ResponseWriter, call int64)) (stdout, stderr string, status int) {
		var calls atomic.Int64
		mux := http.NewServeMux()
		mux.HandleFunc("/v1/ids", func(w http.ResponseWriter, _ *http.Request) { ids(w, calls.Add(1)) })
		mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) { calls.Store(0) })
		mux.HandleFunc("/v1/info", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"generators":[{"name":"flake","format":"flake"}]}`)
		})
		h := httptest.NewServer(mux)
		defer h.Close()
		return benched(t, "-config", writeConfig(t, ""), "-url", h.URL, "-callers", "1")
	}
	const id = "\x00\x0023456789abcdef"
	out, errs, status := bench(func(w http.ResponseWriter, _ int64) { fmt.Fprint(w, id) })
	if status != exitFailure ||
		!regexp.MustCompile(`^flake: [1-9]\d* duplicate ids, for example 3233343536373839616263646566 `+
			`in base 16\n$`).MatchString(errs) ||
		!regexp.MustCompile(`\ntwice    [1-9]\d* of [1-9]\d* ids\n`).MatchString(out) {
		t.Errorf("one id: exit status %d, %q,\n%s", status, errs, out)
	}
	out, errs, status = bench(func(w http.ResponseWriter, call int64) {
		if call == 1 {
			fmt.Fprint(w, id)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"detail":"the disk is full","reason":"timestamp_not_saved"}`)
	})
	if status != exitFailure || errs != "flake: no call was answered\n" ||
		!regexp.MustCompile(`\nerrors   [1-9]\d* timestamp_not_saved\n`).MatchString(out) {
		t.Errorf("no ids: exit status %d, %q,\n%s", status, errs, out)
	}
}
