//go:build unix

// Package postgrestest runs real PostgreSQL servers for tests. It can kill them, copy them and
// promote standbys. It needs PostgreSQL's programs, 14 or later.
package postgrestest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers/storetest"
	"github.com/flake-go/flake/internal/testenv"
)

// Server is a PostgreSQL server. Its superuser is postgres, and it trusts all roles unless
// pg_hba.conf is changed.
type Server struct {
	Dir  string // of the server's data
	Addr string // on loopback; its socket is in the directory that contains Dir

	tb   testing.TB
	as   *syscall.SysProcAttr
	args []string
	cmd  *exec.Cmd
	log  *bytes.Buffer
}

// Start runs a new server until the test ends. args are settings such as "max_connections=20".
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return StartSmall(tb, "", args...)
}

// StartSmall is like [Start], with a disk of a size such as "128m", which needs root.
func StartSmall(tb testing.TB, size string, args ...string) *Server {
	tb.Helper()
	s := newServer(tb, size, args...)
	s.run("initdb", "-D", s.Dir, "-A", "trust", "-U", "postgres", "--no-sync", "--locale=C", "-E", "UTF8")
	s.Start()
	return s
}

// Bouncer runs PgBouncer, with settings such as "pool_mode = transaction", in front of the server
// until the test ends, and returns its address.
func (s *Server) Bouncer(settings ...string) (addr string) {
	s.tb.Helper()
	addr = storetest.FreeAddr(s.tb)
	_, port, _ := net.SplitHostPort(addr)
	users := s.Write("users", `"postgres" ""`)
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\n"+
		"unix_socket_dir =\nauth_type = trust\nauth_file = %s\n%s\n",
		filepath.Dir(s.Dir), s.port(), port, users, strings.Join(settings, "\n"))
	cmd := exec.Command("pgbouncer", s.Write("pgbouncer.ini", text))
	log := new(bytes.Buffer)
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = filepath.Dir(s.Dir), s.as, log, log
	if err := cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if s.tb.Failed() {
			s.tb.Logf("pgbouncer: %.4000s", log)
		}
	})
	for start := time.Now(); time.Since(start) < 5*time.Minute; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return addr
		}
	}
	s.tb.Fatalf("pgbouncer does not start: %s", log)
	return ""
}

// newServer returns a server without data. If this process may mount a tmpfs, the data will be in it, which is
// faster. A disk with a size needs one.
func newServer(tb testing.TB, size string, args ...string) *Server {
	tb.Helper()
	testenv.Need(tb, "psql")
	dir, err := os.MkdirTemp("", "postgres") // the test's own directory may be too deep for a socket, or private
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Dir: filepath.Join(dir, "data"), Addr: storetest.FreeAddr(tb), tb: tb, args: args, as: &syscall.SysProcAttr{}}
	if os.Getuid() == 0 { // PostgreSQL does not run as root
		nobody, err := user.Lookup("nobody")
		if err != nil {
			testenv.Missing(tb, err)
		}
		uid, _ := strconv.Atoi(nobody.Uid)
		gid, _ := strconv.Atoi(nobody.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			tb.Fatal(err)
		}
		s.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	tb.Cleanup(func() {
		s.end()
		if tb.Failed() {
			tb.Logf("PostgreSQL at %s: %.8000s", s.Addr, s.log)
		}
		exec.Command("umount", "-l", dir).Run()
		os.RemoveAll(dir)
	})
	if err := s.mount(dir, cmp.Or(size, "50%")); err != nil && size != "" {
		tb.Fatal(err)
	}
	return s
}

// mount mounts a tmpfs for the server's processes.
func (s *Server) mount(dir, size string) error {
	c := s.as.Credential
	if c == nil {
		return errors.New("only root can mount a disk")
	}
	options := fmt.Sprintf("size=%s,uid=%d,gid=%d,mode=700", size, c.Uid, c.Gid)
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("mount: %w: %s", err, out)
	}
	return err
}

// end kills the server, and removes its System V shared memory, whose id is on the seventh line of postmaster.pid.
func (s *Server) end() {
	s.Kill()
	text, _ := os.ReadFile(filepath.Join(s.Dir, "postmaster.pid"))
	if lines := strings.Split(string(text), "\n"); len(lines) > 6 {
		if key := strings.Fields(lines[6]); len(key) == 2 {
			exec.Command("ipcrm", "-m", key[1]).Run()
		}
	}
}

// clear ends the server and removes its data.
func (s *Server) clear() {
	s.tb.Helper()
	s.end()
	if err := os.RemoveAll(s.Dir); err != nil {
		s.tb.Fatal(err)
	}
}

// program returns the path of one of PostgreSQL's programs.
func program(tb testing.TB, name string) string {
	tb.Helper()
	if all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(all) > 0 {
		return all[len(all)-1]
	}
	testenv.Need(tb, name)
	return name
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	s.tb.Helper()
	cmd := exec.Command(program(s.tb, name), args...)
	cmd.Dir, cmd.SysProcAttr = filepath.Dir(s.Dir), s.as
	return cmd
}

func (s *Server) run(name string, args ...string) string {
	s.tb.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		s.tb.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// Start starts the server with the data in its directory, and waits until it accepts connections.
func (s *Server) Start() {
	s.tb.Helper()
	for start := time.Now(); time.Since(start) < 5*time.Minute; time.Sleep(50 * time.Millisecond) {
		if s.cmd == nil {
			s.start()
		}
		if err := s.command("pg_isready", "-q", "-h", filepath.Dir(s.Dir), "-p", s.port()).Run(); err == nil {
			return
		}
		if s.dead() { // children of a killed server may still have run
			s.cmd = nil
		}
	}
	s.tb.Fatalf("PostgreSQL does not start: %s", s.log)
}

func (s *Server) start() {
	s.tb.Helper()
	args := []string{"-D", s.Dir, "-k", filepath.Dir(s.Dir), "-p", s.port()}
	for _, a := range append([]string{"listen_addresses=127.0.0.1", "wal_level=replica", "hot_standby=on",
		"log_min_messages=warning", "dynamic_shared_memory_type=mmap"}, s.args...) {
		args = append(args, "-c", a)
	}
	s.log = new(bytes.Buffer)
	s.cmd = s.command("postgres", args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
}

// dead reports whether the process has ended, and then waits for it.
func (s *Server) dead() bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	if text != nil && !strings.HasPrefix(rest, "Z") {
		return false
	}
	s.cmd.Wait()
	return true
}

func (s *Server) port() string { _, port, _ := net.SplitHostPort(s.Addr); return port }

// Kill kills all processes of the server.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	s.signal(syscall.SIGKILL)
	s.cmd.Wait()
	s.cmd = nil
}

// Pause stops all processes of the server until Resume.
func (s *Server) Pause()  { s.signal(syscall.SIGSTOP) }
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// signal sends a signal to all processes of the server.
func (s *Server) signal(sig syscall.Signal) {
	s.cmd.Process.Signal(syscall.SIGSTOP) // so that it starts no further children
	out, _ := exec.Command("ps", "-o", "pid=", "--ppid", fmt.Sprint(s.cmd.Process.Pid)).Output()
	for _, pid := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(pid); err == nil {
			syscall.Kill(n, sig)
		}
	}
	s.cmd.Process.Signal(sig)
}

// Stop shuts the server down cleanly.
func (s *Server) Stop() {
	s.tb.Helper()
	s.cmd.Process.Signal(syscall.SIGINT)
	s.cmd.Wait()
	s.cmd = nil
}

// URL returns the URL of the database postgres for a role.
func (s *Server) URL(role string) string {
	return fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", role, s.Addr)
}

// Try executes SQL as the superuser, and returns what psql prints.
func (s *Server) Try(sql string) (string, error) {
	s.tb.Helper()
	cmd := s.Psql()
	cmd.Stdin = strings.NewReader(sql)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("psql: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// Psql returns a command that executes SQL as the superuser.
func (s *Server) Psql() *exec.Cmd {
	return exec.Command("psql", "-h", filepath.Dir(s.Dir), "-p", s.port(), "-U", "postgres", "-XqAt",
		"-v", "ON_ERROR_STOP=1", "postgres")
}

// SQL executes SQL as the superuser.
func (s *Server) SQL(sql string) string {
	s.tb.Helper()
	out, err := s.Try(sql)
	if err != nil {
		s.tb.Fatal(err)
	}
	return out
}

// Await waits until a query returns want.
func (s *Server) Await(query, want string) {
	s.tb.Helper()
	got, err := "", errors.New("no answer")
	for start := time.Now(); time.Since(start) < 5*time.Minute; time.Sleep(10 * time.Millisecond) {
		if got, err = s.Try(query); err == nil && got == want {
			return
		}
	}
	s.tb.Fatalf("%s: %q, not %q: %v", query, got, want, err)
}

// Standby starts a standby of the server, which follows it.
func (s *Server) Standby() *Server {
	s.tb.Helper()
	return s.StandbyAt(s.Addr)
}

// StandbyAt is like [Server.Standby]. The standby reaches the server at an address.
func (s *Server) StandbyAt(addr string) *Server {
	s.tb.Helper()
	b := newServer(s.tb, "", s.args...)
	b.Follow(s, addr)
	return b
}

// Follow makes the server a standby of another, which it reaches at an address. It loses its own
// data.
func (s *Server) Follow(primary *Server, addr string) {
	s.tb.Helper()
	s.clear()
	host, port, _ := net.SplitHostPort(addr)
	s.run("pg_basebackup", "-D", s.Dir, "-h", host, "-p", port, "-U", "postgres", "-R", "-X", "stream",
		"--no-sync", "-c", "fast")
	s.Start()
}

// Promote makes a standby accept writes.
func (s *Server) Promote() {
	s.tb.Helper()
	s.SQL("SELECT pg_promote(true, 300)")
	s.Await("SELECT pg_is_in_recovery()", "f")
}

// Copy copies the server's data to a new directory. It restarts the server.
func (s *Server) Copy(folder string) {
	s.tb.Helper()
	s.Kill()
	s.run("cp", "-a", s.Dir, folder)
	s.Start()
}

// Put restarts the server with a copy of the data in a directory.
func (s *Server) Put(folder string) {
	s.tb.Helper()
	s.clear()
	s.run("cp", "-a", folder, s.Dir)
	s.Start()
}

// Recover restarts the server from a base backup, recovered to its end: a new timeline.
func (s *Server) Recover(backup string) {
	s.tb.Helper()
	s.clear()
	s.run("cp", "-a", backup, s.Dir)
	s.run("touch", filepath.Join(s.Dir, "recovery.signal"))
	args := s.args
	s.args = append(slices.Clone(args), "restore_command=false", "recovery_target=immediate",
		"recovery_target_action=promote")
	s.Start()
	s.args = args // otherwise, the server would promote itself if it became a standby
	s.Await("SELECT pg_is_in_recovery()", "f")
}

// Backup makes a base backup in a new directory.
func (s *Server) Backup(folder string) {
	s.tb.Helper()
	s.run("pg_basebackup", "-D", folder, "-h", filepath.Dir(s.Dir), "-p", s.port(), "-U", "postgres", "-X", "stream",
		"--no-sync", "-c", "fast")
}

// Folder returns the path of a directory that does not exist yet, which the server's processes may
// make.
func (s *Server) Folder(name string) string { return filepath.Join(filepath.Dir(s.Dir), name) }

// Write writes a file into the server's directory, which only the server's processes may read, and
// returns its path.
func (s *Server) Write(name, text string) string {
	s.tb.Helper()
	path := filepath.Join(s.Dir, name)
	err := os.WriteFile(path, []byte(text), 0o600)
	if c := s.as.Credential; err == nil && c != nil {
		err = os.Chown(path, int(c.Uid), int(c.Gid))
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	return path
}

// Run runs one of PostgreSQL's programs, with the server as its host, and returns its output.
func (s *Server) Run(name string, args ...string) string {
	s.tb.Helper()
	return s.run(name, append([]string{"-h", filepath.Dir(s.Dir), "-p", s.port(), "-U", "postgres"}, args...)...)
}

// Proxy returns a client's path to the server, which lasts until the test ends.
func (s *Server) Proxy() *storetest.Proxy { return NewProxy(s.tb).To(nil, s.Addr) }

// NewProxy returns a proxy for clients of servers.
func NewProxy(tb testing.TB) *storetest.Proxy {
	p := storetest.NewProxy(tb)
	p.Write = func(sent []byte) bool { return bytes.Contains(sent, []byte("INSERT INTO")) }
	p.Login = true
	return p
}
