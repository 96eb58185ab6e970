package main

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Callers that do not run on the BEAM.

// libDir returns the directory of an Erlang application.
func libDir(application string) (string, error) {
	code := fmt.Sprintf(`io:put_chars(code:lib_dir(%s)), halt().`, application)
	out, err := exec.Command("erl", "-noinput", "-eval", code).Output()
	if errors.As(err, new(*exec.ExitError)) {
		err = fmt.Errorf("%s of Erlang: %w", application, exec.ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	return string(out), nil
}

var buildCNode = sync.OnceValue(func() error {
	ei, err := libDir("erl_interface")
	if err != nil {
		return err
	}
	return compile("gcc", "-Wall", "-Wextra", "-Werror", "-I"+ei+"/include", "-o", filepath.Join(built, "cnode"),
		"testdata/cnode.c", "-L"+ei+"/lib", "-lei", "-lpthread")
})

func (n *flakeNode) cnode(cookie string, checks ...string) {
	n.t.Helper()
	need(n.t, buildCNode())
	args := append([]string{"CALLER_COOKIE=" + cookie, filepath.Join(built, "cnode"), nodeName}, checks...)
	wantChecks(n.t, spawn(n.t, n.port, "env", args...), checks...)
}

func TestC(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	n.cnode(cookie, "ping", "get", "text", "calls", "unknown", "rpc", "again", "ping")
	n.cnode("wrong", "refused")
	n.cnode(cookie, "get")
}

// The library answers each tick with a tick.
func TestCTicks(t *testing.T) {
	t.Parallel()
	n := startCommand(t, command, "", "net_ticktime = 4")
	n.cnode(cookie, "ping", "idle", "get")
}

// buildJava compiles testdata/Caller.java, and returns the class path that it needs.
var buildJava = sync.OnceValues(func() (string, error) {
	lib, err := libDir("jinterface")
	if err != nil {
		return "", err
	}
	lib += "/priv/OtpErlang.jar"
	return lib + string(filepath.ListSeparator) + built, compile("javac", "-Xlint", "-Werror", "-cp", lib, "-d", built,
		"testdata/Caller.java")
})

func (n *flakeNode) java(cookie string, checks ...string) {
	n.t.Helper()
	path, err := buildJava()
	need(n.t, err)
	args := append([]string{"-cp", path, "Caller", nodeName, cookie}, checks...)
	wantChecks(n.t, spawn(n.t, n.port, "java", args...), checks...)
}

func TestJava(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	n.java(cookie, "ping", "get", "text", "unknown", "rpc", "watch", "again", "ping")
	n.java("wrong", "refused")
	n.java(cookie, "get")
}

func TestErlCall(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	_, port, _ := net.SplitHostPort(n.addr)
	const id = `\{ok, #Bin<0,0,(\d+,){13}\d+>\}`
	for _, call := range []struct {
		args, apply, want string
	}{
		{"-n " + nodeName, "flake_server id []", id},
		{"-name " + nodeName, "flake_server id", id},
		{"-r -n " + nodeName, "flake_server id [62]", `\{ok, "[0-9A-Za-z]{10,22}"\}`},
		{"-h other -n " + nodeName, "flake_server id [63]", `\{error, badarg\}`},
		{"-address " + port, "erlang node []", "'" + nodeName + "'"},
		{"-address 127.0.0.1:" + port, "erlang node []", "'" + nodeName + "'"},
		{"-fetch_stdout -n " + nodeName, "flake_util as_list [255,16]", `"FF"`},
		{"-no_result_term -n " + nodeName, "erlang node []", ""},
		{"-n " + nodeName, `os cmd ["ls"]`, `\{badrpc, \{'EXIT', \{undef, \[\{os, cmd, \["ls"\], \[\]\}\]\}\}\}`},
	} {
		args := append([]string{"-c", cookie}, strings.Fields(call.args)...)
		p := spawn(t, n.port, "erl_call", append(args, "-a", call.apply)...)
		if status := p.wait(); status != 0 || !regexp.MustCompile("^"+call.want+"$").MatchString(p.output()) {
			t.Errorf("%s: exit status %d, %q, want %s", call.apply, status, p.output(), call.want)
		}
	}
	// This would stop an Erlang node.
	spawn(t, n.port, "erl_call", "-c", cookie, "-n", nodeName, "-q").wait()
	for _, cookie := range []string{"wrong", cookie} {
		p := spawn(t, n.port, "erl_call", "-c", cookie, "-n", nodeName)
		if served := p.wait() == 0; served != (cookie != "wrong") {
			t.Errorf("cookie %s: served: %v", cookie, served)
		}
	}
}
