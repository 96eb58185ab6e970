package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/internal/certstest"
)

// A node listens only on the sockets that docs/operating/network.md lists.
func TestSockets(t *testing.T) {
	table := readFile(t, "../../docs/operating/network.md")
	for _, name := range []string{"`node.listen`", "`http.listen`", "`http.metrics`", "4369", "@flake/"} {
		if !strings.Contains(table, name) {
			t.Errorf("network.md does not mention %s", name)
		}
	}
	for name, mode := range map[string]struct {
		epmd                                 string // node.epmd
		daemon, http, metrics, tls, terminal bool
		generators                           int // in addition to the first
	}{
		"default":    {epmd: "auto"},
		"EPMD":       {epmd: "auto", daemon: true},
		"no EPMD":    {epmd: "off"},
		"HTTP":       {epmd: "off", http: true},
		"metrics":    {epmd: "off", http: true, metrics: true},
		"TLS":        {epmd: "off", tls: true},
		"prompt":     {epmd: "off", terminal: true},
		"generators": {epmd: "off", generators: 2},
		"all":        {epmd: "auto", http: true, metrics: true, tls: true, generators: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			epmd, port := freePort(t), freePort(t)
			want := map[string]int{port: 1, "@flake": 1 + mode.generators}
			if mode.daemon {
				startEPMD(t, epmd)
			} else if mode.epmd == "auto" {
				want[epmd] = 1
			}
			text := fmt.Sprintf("cookie = %q\nepmd = %q\nlisten = \"127.0.0.1:%s\"\n", cookie, mode.epmd, port)
			if mode.tls {
				text += tlsTable(certstest.NewCA(t, "ca"), "none")
			}
			if mode.http {
				at := freePort(t)
				want[at] = 1
				text += fmt.Sprintf("[http]\nlisten = \"127.0.0.1:%s\"\n", at)
			}
			if mode.metrics {
				at := freePort(t)
				want[at] = 1
				text += fmt.Sprintf("metrics = \"127.0.0.1:%s\"\n", at)
			}
			for i := range mode.generators {
				text += fmt.Sprintf("[[generator]]\nname = \"g%d\"\nformat = \"flake\"\nworker_id = %q\n", i, flake.RandomWorker())
			}
			config := configFile(t, text)
			if mode.terminal {
				p := spawn(t, epmd, "script", "-qec", command+" -config "+config, "/dev/null")
				defer func() { p.signal(syscall.SIGTERM); p.wait() }() // script passes it on; killed, it would not stop the node
			} else {
				spawn(t, epmd, command, "-noinput", "-config", config)
			}
			await(t, "the node listens", func() bool {
				got := listening(t, config)
				for socket, n := range want {
					if got[socket] < n {
						return false
					}
				}
				return true
			})
			if got := listening(t, config); !maps.Equal(got, want) {
				t.Errorf("listens on %v, want %v", got, want)
			}
		})
	}
}

// listening counts the listening sockets, by port or by the first part of their names, of the
// processes whose arguments contain arg. Addresses at one port count as one.
func listening(t *testing.T, arg string) map[string]int {
	t.Helper()
	all := map[string]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(dir + "/cmdline")
		if !strings.Contains(string(args), arg) {
			continue
		}
		inodes := map[string]bool{}
		fds, _ := filepath.Glob(dir + "/fd/*")
		for _, fd := range fds {
			target, _ := os.Readlink(fd)
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				inodes[strings.TrimSuffix(inode, "]")] = true
			}
		}
		for _, protocol := range []string{"tcp", "tcp6", "udp", "udp6", "raw", "raw6"} {
			for _, f := range linesOf(dir + "/net/" + protocol) {
				const local, state, inode = 1, 3, 9
				if len(f) <= inode || !inodes[f[inode]] || strings.HasPrefix(protocol, "tcp") && f[state] != "0A" {
					continue
				}
				_, hex, _ := strings.Cut(f[local], ":")
				port, err := strconv.ParseUint(hex, 16, 16)
				if err != nil {
					t.Fatal(err)
				}
				all[strconv.FormatUint(port, 10)] = 1
			}
		}
		for _, f := range linesOf(dir + "/net/unix") {
			const flags, inode, path, accepts = 3, 6, 7, "00010000"
			if len(f) > path && f[flags] == accepts && inodes[f[inode]] {
				first, _, _ := strings.Cut(f[path], "/")
				all[first]++
			}
		}
	}
	return all
}

// linesOf returns the fields of each line of a file.
func linesOf(file string) [][]string {
	text, _ := os.ReadFile(file)
	return slices.Collect(func(yield func([]string) bool) {
		for line := range strings.Lines(string(text)) {
			if !yield(strings.Fields(line)) {
				return
			}
		}
	})
}
