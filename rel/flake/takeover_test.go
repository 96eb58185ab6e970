package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/migrate"
)

// originalNode is a node that runs the stand-in for the original.
type originalNode struct {
	*process
	port   string // of its EPMD
	listen string // its own
	folder string
	files  []string // in folder
	worker flake.Worker
}

func startOriginal(t *testing.T) *originalNode {
	t.Helper()
	o := &originalNode{port: freePort(t), listen: freePort(t), folder: t.TempDir(), worker: flake.RandomWorker()}
	startEPMD(t, o.port)
	need(t, compile("erlc", "-Werror", "-o", o.folder, "testdata/original.erl"))
	args := append(patient[:len(patient):len(patient)], "-noinput", "-pa", o.folder, "-name", nodeName, "-setcookie",
		cookie, "-start_epmd", "false",
		"-kernel", "inet_dist_use_interface", "{127,0,0,1}", "inet_dist_listen_min", o.listen,
		"inet_dist_listen_max", o.listen,
		"-flake", "timestamp_path", fmt.Sprintf("%q", filepath.Join(o.folder, "dets")), "allowable_downtime", "2592000000",
		"interface", `"eth7"`,
		"-s", "original", "main", "-extra", fmt.Sprintf("%x", uint64(o.worker)))
	o.process = spawn(t, o.port, "erl", args...)
	o.await("READY")
	o.files = o.list()
	return o
}

// list returns the paths of the files in its folder.
func (o *originalNode) list() []string {
	o.t.Helper()
	files, err := filepath.Glob(filepath.Join(o.folder, "*"))
	if err != nil {
		o.t.Fatal(err)
	}
	return files
}

// cleanUp removes what a killed command left.
func (o *originalNode) cleanUp() {
	for _, path := range o.list() {
		if !slices.Contains(o.files, path) {
			os.Remove(path)
		}
	}
}

// takeover starts the command that takes over from the original, with these variables and flags.
func (o *originalNode) takeover(env []string, flags ...string) *process {
	o.t.Helper()
	args := []string{"FLAKE_FLAKE_TIMESTAMP_PATH=" + filepath.Join(o.folder, "timestamp")}
	args = append(append(args, env...), command, "takeover", "-from", nodeName)
	if !slices.Contains(flags, "-config") {
		args = append(args, "-out", filepath.Join(o.folder, "sys.toml"))
	}
	if all := strings.Join(flags, " "); !strings.Contains(all, "-setcookie") && !strings.Contains(all, "-vm-args") {
		args = append(args, "-setcookie", cookie)
	}
	return spawn(o.t, o.port, "/usr/bin/env", append(args, flags...)...)
}

// call calls a server of the node that now has the original's name.
func (o *originalNode) call(server etf.Atom, request etf.Term) (etf.Term, error) {
	ctx, cancel := context.WithTimeout(o.t.Context(), patience/4)
	defer cancel()
	conn, err := client.Dialer{Cookie: cookie, EPMD: "127.0.0.1:" + o.port}.Dial(ctx, nodeName)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Call(ctx, server, request)
}

func (o *originalNode) get() (id flake.ID, err error) {
	reply, err := o.call("flake", etf.Atom("get"))
	if err != nil {
		return id, err
	}
	text, ok := reply.(etf.Tuple)[1].([]byte)
	if !ok {
		return id, fmt.Errorf("%v", reply)
	}
	return flake.ID(text), nil
}

// fails starts a takeover that must fail. The original then continues, and no file is left.
func (o *originalNode) fails(what string, env, flags string, status int, want string) {
	o.t.Helper()
	p := o.takeover(strings.Fields(env), strings.Fields(flags)...)
	for !p.says("hands out ids") && p.tooSlow() {
		p = o.takeover(strings.Fields(env), strings.Fields(flags)...)
	}
	if p.says("hands out ids") {
		o.t.Fatalf("%s: the original was taken over", what)
	}
	if got := p.wait(); got != status || !strings.Contains(p.output(), want) {
		o.t.Errorf("%s: exit status %d, want %d and %s\n%s", what, got, status, want, p.output())
	}
	o.mustContinue(what)
}

func (o *originalNode) mustContinue(what string) {
	o.t.Helper()
	if _, err := o.call("flake", etf.Atom("anything")); err != nil {
		o.t.Fatalf("%s: the original does not answer: %v", what, err)
	}
	if now := o.list(); !slices.Equal(now, o.files) {
		o.t.Errorf("%s: the folder has %q, want %q as before", what, now, o.files)
	}
}

// TestTakeover tries takeovers that must fail, and then takes over from the original while an
// Erlang node calls it. Calls may fail only during the last takeover, and each caller's connection
// ends once.
func TestTakeover(t *testing.T) {
	t.Parallel()
	o := startOriginal(t)
	o.refusals()
	stop := filepath.Join(o.folder, "stop")
	check := "across=" + stop + ",4"
	caller := spawnErl(t, o.port, nil, check)
	caller.await("CALLING")
	o.dryRun()
	o.signals()
	o.late()

	before, err := o.get()
	if err != nil {
		t.Fatal(err)
	}
	vmArgs := writeConfig(t, "-name %s\n-setcookie %s\n+K true\n", nodeName, cookie)
	sysConfig := writeConfig(t, "[{sasl, [{errlog_type, error}]}, {flake, [{interface, \"eth7\"}]}].\n")
	p := o.takeover(nil, "-noinput", "-vm-args", vmArgs, "-sys-config", sysConfig)
	for !p.says("  EPMD ") && p.tooSlow() {
		p = o.takeover(nil, "-noinput", "-vm-args", vmArgs, "-sys-config", sysConfig)
	}
	if address := p.await("  address "); !strings.HasSuffix(address, ":"+o.listen) {
		t.Errorf("it listens at %s, but the original listened at port %s", address, o.listen)
	}
	p.await("  EPMD ")
	if after, err := o.get(); err != nil || after.Compare(before) <= 0 || after.Worker() != o.worker {
		t.Errorf("got the id %v after the takeover, want one above %v with the worker id %v; %v", after, before,
			o.worker, err)
	}
	o.wait()
	await(t, "the callers are back", func() bool { return strings.Contains(p.output(), "msg=connected peer=caller@") })
	writeFile(t, stop, "")
	report := caller.await("ACROSS ")
	wantChecks(t, caller, check)
	if !strings.Contains(report, "twice=0 outages=1 above=true") {
		t.Error(report)
	}
	t.Log(report)
	p.signal(syscall.SIGTERM)
	if status := p.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	cfg, err := config.Load(filepath.Join(o.folder, "sys.toml"))
	if err != nil || cfg.Flake.Options["worker_id"] != int64(o.worker) ||
		cfg.Node.Name != nodeName || cfg.Node.Cookie != cookie {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func (o *originalNode) refusals() {
	t := o.t
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	other := writeConfig(t, "[node]\nname = %q\ncookie = %q\n[flake]\nworker_id = %q\ntimestamp_path = %q\n",
		nodeName, cookie,
		flake.RandomWorker(), filepath.Join(o.folder, "other"))
	there := filepath.Join(o.folder, "there")
	writeFile(t, there, "")
	o.files = o.list()
	for what, tt := range map[string]struct {
		env, flags string
		status     int
		want       string
	}{
		"wrong cookie": {"", "-setcookie wrong", exitFailure,
			"possible cause: wrong cookie); set -setcookie, FLAKE_COOKIE, or node.cookie in the -config file"},
		"no such node": {"", "-from nosuch@127.0.0.1", exitFailure,
			"run this on the original's machine, while the original runs"},
		"another machine": {"", "-from flake@192.0.2.1 -setcookie 9b014e1514494868", exitFailure,
			"192.0.2.1 is another machine; run this on the original's machine, while the original runs"},
		"no name":    {"", "-from flake", exitUsage, "must be name@host"},
		"nobody":     {"", "-from=", exitUsage, "set -from name@host"},
		"no vm.args": {"", "-vm-args /nonexistent/vm.args", exitUsage, "/nonexistent/vm.args"},
		"another name": {"", "-from other@127.0.0.1 -config " + other, exitUsage,
			"the node must have the original's name"},
		"-config and -out": {"", "-out sys.toml -config " + other, exitUsage, "-out cannot be combined with -config"},
		"-config and a mark": {"", "-timestamp mark -config " + other, exitUsage,
			"-timestamp cannot be combined with -config"},
		"another worker": {"", "-config " + other, exitFailure,
			"this node would use a different one; set flake.worker_id to the original's"},
		"out is there": {"", "-out " + there, exitFailure, "already exists"},
		"out has no folder": {"", "-out /nonexistent/sys.toml", exitFailure,
			"-out: open /nonexistent/sys.toml: no such file or directory"},
		"mark not writable": {"FLAKE_FLAKE_TIMESTAMP_PATH=/tmp/timestamp", "", exitFailure,
			"sys.toml: removed, because nothing was taken over\nflake: timestamp_path /tmp/timestamp: its " +
				"directory is world-writable"},
		"the dets file": {"FLAKE_FLAKE_TIMESTAMP_PATH=", "-timestamp " + filepath.Join(o.folder, "dets"), exitFailure,
			"it was left unchanged"},
		"HTTP's port taken":   {"FLAKE_HTTP_LISTEN=" + taken.Addr().String(), "", exitFailure, "address already in use"},
		"node's port taken":   {"FLAKE_NODE_LISTEN=" + taken.Addr().String(), "", exitFailure, "node.listen: "},
		"settings that clash": {"FLAKE_HTTP_LISTEN=0.0.0.0:1", "", exitUsage, "set http.token_file"},
	} {
		o.fails(what, tt.env, tt.flags, tt.status, tt.want)
	}
	state := etf.Tuple{etf.Atom("state"), time.Now().UnixMilli(), int64(o.worker), int64(0)}
	for _, odd := range []struct {
		server  etf.Atom
		request etf.Term
		want    string
	}{
		{"flake", etf.Tuple{etf.Atom("become"), append(state, etf.Atom("odd"))},
			"{state, Time, Worker, Sequence}, but {state,"},
		{"flake", etf.Tuple{etf.Atom("become"), etf.Tuple{state[0], state[1].(int64) + 3600_000, state[2], state[3]}},
			"ahead of this machine's clock"},
		{"persistent_timer", etf.Atom("heart"), "the original did not halt: another_server"},
		{"persistent_timer", etf.Tuple{etf.Atom("deaf"), etf.Atom("heart")}, "the original did not halt: heart"},
		{"persistent_timer", etf.Tuple{etf.Atom("trick"), etf.Atom("another_server")},
			"the original did not halt: another_server"}, // the guard does not tell heart
		{"persistent_timer", etf.Tuple{etf.Atom("trick"), etf.Atom("none")}, "the original did not halt: heart"},
		{"persistent_timer", etf.Tuple{etf.Atom("deaf"), etf.Atom("flake_takeover")},
			"was not suspended: {failed,{badarg,[{erlang,register,[flake_takeover,"},
	} {
		o.tell(odd.server, odd.request)
		o.fails(odd.want, "", "", exitFailure, odd.want)
		o.tell("flake", etf.Tuple{etf.Atom("become"), state})
	}
	for _, name := range []etf.Atom{"heart", "flake_takeover"} {
		o.tell("persistent_timer", etf.Tuple{etf.Atom("kill"), name})
	}
}

// dryRun checks that a dry run shows who uses the original, and that the original continues.
func (o *originalNode) dryRun() {
	o.tell("persistent_timer", etf.Tuple{etf.Atom("deaf"), etf.Atom("neighbour")})
	p := o.takeover(nil, "-dry-run")
	if status := p.wait(); status != 0 {
		o.t.Errorf("exit status %d", status)
	}
	for _, want := range []string{"found: 1 connected: 'caller@",
		"found: 1 named, and lost with the original: neighbour\n",
		nodeName + " can be taken over", "sys.toml: removed"} {
		if !strings.Contains(p.output(), want) {
			o.t.Errorf("the dry run does not print %q:\n%s", want, p.output())
		}
	}
	o.mustContinue("dry run")
	o.tell("persistent_timer", etf.Tuple{etf.Atom("kill"), etf.Atom("neighbour")})
}

// The original has ended when its port accepts no connections and EPMD no longer has its name, or has stopped too.
func TestOriginalGone(t *testing.T) {
	for _, tt := range []struct {
		name       string
		epmd, port bool
		want       bool
	}{
		{"nosuch", true, true, false},
		{"nosuch", true, false, true},
		{"flake", true, false, false},
		{"flake", false, true, false},
		{"flake", false, false, true},
	} {
		l := startLiar(t, "", nil)
		addr, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if !tt.epmd {
			l.epmd.Close()
		}
		if !tt.port {
			addr.Close()
		}
		h := migrate.Handover{Name: tt.name, Epmd: "127.0.0.1:" + l.port, Addr: addr.Addr().String()}
		if got := h.Gone(t.Context()); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
		addr.Close()
	}
}

// A node that is not the original stays as it is.
func TestTakeoverOfAnother(t *testing.T) {
	t.Parallel()
	n := startNode(t, "", "-name", nodeName, "-setcookie", cookie)
	o := originalNode{process: n.process, port: n.port, folder: t.TempDir()}
	o.fails("this node", "", "", exitFailure, "is it a node of boundary/flake?")
}
