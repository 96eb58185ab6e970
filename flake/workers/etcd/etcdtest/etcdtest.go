// Package etcdtest runs real etcd processes for tests. It can kill and pause them, and
// disconnect them from each other and from clients. It needs the etcd command, 3.4 or later.
package etcdtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	proxy   *Proxy
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
			listen: free(tb), Endpoint: free(tb)}
		m.proxy = NewProxy(tb, here(tb), there(m.listen))
		initial = append(initial, m.name+"=http://"+m.proxy.Addr())
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
		"--initial-advertise-peer-urls", "http://" + m.proxy.Addr(), "--listen-peer-urls", "http://" + m.listen,
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
func (m *Member) Cut()  { m.proxy.set(connections) }
func (m *Member) Join() { m.proxy.set(nothing) }

// Mute drops the member's answers on connections that other members opened, until Join. The
// member still receives what they send, and clients can still reach it.
func (m *Member) Mute() { m.proxy.set(answers) }

// Link is one client's path to all members.
type Link struct{ proxies []*Proxy }

// Link returns a new path to the members, which lasts until the test ends.
func (c *Cluster) Link() *Link {
	c.tb.Helper()
	return c.LinkFrom(func() net.Listener { return here(c.tb) })
}

// LinkFrom is like [Cluster.Link]. The client connects to what listen returns, which may be in another network
// namespace.
func (c *Cluster) LinkFrom(listen func() net.Listener) *Link {
	c.tb.Helper()
	l := &Link{}
	for _, m := range c.Members {
		l.proxies = append(l.proxies, NewProxy(c.tb, listen(), there(m.Endpoint)))
	}
	return l
}

// LinkTo returns a path by one [Proxy].
func LinkTo(tb testing.TB, l net.Listener, dial func() (net.Conn, error)) *Link {
	return &Link{proxies: []*Proxy{NewProxy(tb, l, dial)}}
}

// Endpoints returns the addresses at which the client reaches the members.
func (l *Link) Endpoints() (all []string) {
	for _, p := range l.proxies {
		all = append(all, p.Addr())
	}
	return all
}

// DropRequests drops what the client sends to any member, until Join. The client can still
// connect.
func (l *Link) DropRequests() { l.set(requests) }

// DropAnswers drops what the members answer, until Join. They still receive requests.
func (l *Link) DropAnswers() { l.set(answers) }

// Delay delivers writes, but not reads, only after [Late], even if the client has given up by then.
func (l *Link) Delay() { l.set(writes) }

// Late is how late [Link.Delay] delivers a write.
const Late = 800 * time.Millisecond

// Cut closes the client's connections and accepts no others, until Join.
func (l *Link) Cut()  { l.set(connections) }
func (l *Link) Join() { l.set(nothing) }

func (l *Link) set(c cut) {
	for _, p := range l.proxies {
		p.set(c)
	}
}

// free returns a free address. A killed member needs its port again, so the port is outside the
// range from which systems choose ports. It is not below 30000, where other tests choose ports.
// free holds the UDP port with the same number until the test ends, so that it never
// returns the same address twice.
func free(tb testing.TB) string {
	for range 100 {
		addr := fmt.Sprint("127.0.0.1:", 30000+rand.IntN(2700))
		taken, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		tb.Cleanup(func() { taken.Close() })
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	tb.Fatal("no port is free")
	return ""
}

// cut is what a proxy does not forward, or not immediately.
type cut int

const (
	nothing     cut = iota
	connections     // nothing is forwarded, and connections are closed
	requests        // what the client sends
	answers         // what the server sends
	writes          // what the client sends to change a key, which is late
)

// Proxy forwards connections.
type Proxy struct {
	l    net.Listener
	dial func() (net.Conn, error)
	wg   sync.WaitGroup

	mu   sync.Mutex
	cut  cut
	open context.Context // of the current connections; they close when it is done
	end  context.CancelFunc
}

// NewProxy forwards connections from l to what dial returns, until the test ends.
func NewProxy(tb testing.TB, l net.Listener, dial func() (net.Conn, error)) *Proxy {
	p := &Proxy{l: l, dial: dial}
	p.open, p.end = context.WithCancel(context.Background())
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(c) })
		}
	})
	tb.Cleanup(p.close)
	return p
}

// here returns a listener on loopback.
func here(tb testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// there returns a function that dials an address.
func there(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.Dial("tcp", addr) }
}

// Addr returns the address at which the proxy accepts connections.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

func (p *Proxy) pass(from net.Conn) {
	defer from.Close()
	now, open := p.now()
	to, err := p.dial()
	if err != nil {
		return
	}
	defer to.Close()
	if now == connections {
		return
	}
	defer context.AfterFunc(open, func() { from.Close(); to.Close() })()
	done := make(chan struct{}, 2)
	forward := func(from, to net.Conn, dropped cut) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			now, _ := p.now()
			late := now == writes && dropped == requests && (bytes.Contains(buf[:n], []byte("request_put")) ||
				bytes.HasPrefix(buf[:n], []byte("PATCH "))) // to etcd, or to Kubernetes
			if late {
				time.Sleep(Late)
			}
			if n > 0 && now != dropped {
				_, err = to.Write(buf[:n])
			}
			if late { // the client may have hung up: give the server time to write
				time.Sleep(Late / 4)
			}
			if err != nil {
				done <- struct{}{}
				return
			}
		}
	}
	p.wg.Go(func() { forward(from, to, requests) })
	p.wg.Go(func() { forward(to, from, answers) })
	<-done
}

func (p *Proxy) now() (cut, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut, p.open
}

func (p *Proxy) set(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A connection that has lost bytes cannot be used again.
	if c == connections || p.cut != nothing && p.cut != writes && p.cut != c {
		p.end()
		p.open, p.end = context.WithCancel(context.Background())
	}
	p.cut = c
}

func (p *Proxy) close() {
	p.l.Close()
	p.set(connections)
	p.wg.Wait()
}
