// Package etcdtest runs real etcd processes for tests. It can kill and pause them, and
// disconnect them from each other and from clients. It needs the etcd command, 3.4 or later.
package etcdtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers/storetest"
	"github.com/flake-go/flake/internal/testenv"
)

// Cluster is an etcd cluster of one or more members.
type Cluster struct {
	Members []*Member
	tb      testing.TB
	initial string
	args    []string
}

// Member is one etcd process.
type Member struct {
	Endpoint string // for clients

	cluster *Cluster
	name    string
	dir     string
	listen  string // address for other members, behind the proxy
	proxy   *storetest.Proxy
	cmd     *exec.Cmd
	log     *bytes.Buffer
}

// Start runs a cluster of n members until the test ends. It returns once they have a leader.
func Start(tb testing.TB, n int, args ...string) *Cluster {
	tb.Helper()
	testenv.Need(tb, "etcd")
	c := &Cluster{tb: tb, args: args}
	var initial []string
	for i := range n {
		m := &Member{cluster: c, name: fmt.Sprint("m", i), dir: filepath.Join(tb.TempDir(), "etcd"),
			listen: storetest.FreeAddr(tb), Endpoint: storetest.FreeAddr(tb)}
		m.proxy = storetest.NewProxy(tb).To(nil, m.listen)
		initial = append(initial, m.name+"=http://"+m.proxy.Addrs[0])
		c.Members = append(c.Members, m)
	}
	c.initial = strings.Join(initial, ",")
	tb.Cleanup(func() {
		for _, m := range c.Members {
			m.Kill()
			if tb.Failed() {
				tb.Logf("etcd %s: %.4000s", m.name, m.log)
			}
		}
	})
	for _, m := range c.Members {
		m.Start()
	}
	c.Leader()
	return c
}

// Endpoints returns the client endpoints of all members.
func (c *Cluster) Endpoints() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Endpoint)
	}
	return all
}

// Leader waits until a majority agrees on a leader, and returns it.
func (c *Cluster) Leader() *Member {
	c.tb.Helper()
	for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		votes := map[string]int{}
		ids := map[string]*Member{}
		for _, m := range c.Members {
			var status struct {
				Header struct {
					ID string `json:"member_id"`
				}
				Leader string // missing if there is no leader
			}
			if m.Call("maintenance/status", "{}", &status) == nil {
				ids[status.Header.ID] = m
				votes[status.Leader]++
			}
		}
		for id, n := range votes {
			if id != "" && n > len(c.Members)/2 && ids[id] != nil {
				return ids[id]
			}
		}
	}
	c.tb.Fatal("etcd has no leader")
	return nil
}

// Call posts a message to the member's JSON gateway and decodes the answer.
func (m *Member) Call(path, message string, answer any) error {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Post("http://"+m.Endpoint+"/v3/"+path, "application/json", strings.NewReader(message))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// Start starts the process with the data in its directory.
func (m *Member) Start() {
	m.cluster.tb.Helper()
	m.log = new(bytes.Buffer)
	m.cmd = exec.Command("etcd", append([]string{
		"--name", m.name, "--data-dir", m.dir, "--initial-cluster", m.cluster.initial,
		"--initial-advertise-peer-urls", "http://" + m.proxy.Addrs[0], "--listen-peer-urls", "http://" + m.listen,
		"--listen-client-urls", "http://" + m.Endpoint, "--advertise-client-urls", "http://" + m.Endpoint,
		"--heartbeat-interval", "50", "--election-timeout", "500", "--logger", "zap", "--log-level", "error",
	}, m.cluster.args...)...)
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	if err := m.cmd.Start(); err != nil {
		m.cluster.tb.Fatalf("%v: apt-get install etcd-server", err)
	}
}

func (m *Member) Kill() {
	if m.cmd == nil {
		return
	}
	m.cmd.Process.Kill()
	m.cmd.Wait()
	m.cmd = nil
}

// Copy copies the member's data to a new directory. It restarts the member.
func (m *Member) Copy(folder string) {
	m.cluster.tb.Helper()
	m.Kill()
	m.copy(folder, m.dir)
	m.Start()
}

// Restore restarts the member with a copy of the data in a directory.
func (m *Member) Restore(folder string) {
	m.cluster.tb.Helper()
	m.Kill()
	if err := os.RemoveAll(m.dir); err != nil {
		m.cluster.tb.Fatal(err)
	}
	m.copy(m.dir, folder)
	m.Start()
}

func (m *Member) copy(to, from string) {
	m.cluster.tb.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		m.cluster.tb.Fatal(err)
	}
}

// Copy copies the data of all members to a new directory. It restarts them.
func (c *Cluster) Copy(folder string) {
	c.tb.Helper()
	c.restart(func(m *Member) { m.copy(filepath.Join(folder, m.name), m.dir) })
}

// Restore restarts all members with the data in a directory, which it moves.
func (c *Cluster) Restore(folder string) {
	c.tb.Helper()
	c.restart(func(m *Member) {
		if err := errors.Join(os.RemoveAll(m.dir), os.Rename(filepath.Join(folder, m.name), m.dir)); err != nil {
			c.tb.Fatal(err)
		}
	})
}

// restart kills all members, calls change for each, and starts them.
func (c *Cluster) restart(change func(m *Member)) {
	c.tb.Helper()
	for _, m := range c.Members {
		m.Kill()
	}
	for _, m := range c.Members {
		change(m)
		m.Start()
	}
	c.Leader()
}

// Pause stops the process until Resume, and waits until all its threads have stopped.
func (m *Member) Pause() {
	m.cmd.Process.Signal(syscall.SIGSTOP)
	syscall.Wait4(m.cmd.Process.Pid, nil, syscall.WUNTRACED, nil)
}

func (m *Member) Resume() { m.cmd.Process.Signal(syscall.SIGCONT) }

// Cut keeps other members from reaching this member, until Join. Clients can still reach it.
func (m *Member) Cut()  { m.proxy.Cut() }
func (m *Member) Join() { m.proxy.Join() }

// Mute drops the member's answers on connections that other members opened, until Join. The
// member still receives what they send, and clients can still reach it.
func (m *Member) Mute() { m.proxy.DropAnswers() }

// Link returns a client's path to all members, in their order, which lasts until the test ends.
func (c *Cluster) Link() *storetest.Proxy { return c.LinkFrom(func() net.Listener { return nil }) }

// LinkFrom is like [Cluster.Link]. The client connects to what listen returns, which may be in another network
// namespace.
func (c *Cluster) LinkFrom(listen func() net.Listener) *storetest.Proxy {
	p := storetest.NewProxy(c.tb)
	p.Write = func(sent []byte) bool { return bytes.Contains(sent, []byte("request_put")) }
	for _, m := range c.Members {
		p.To(listen(), m.Endpoint)
	}
	return p
}
