// Package kubernetestest runs a real Kubernetes API server for tests, over a real etcd. It can kill
// them, and restore etcd. There are no nodes and no controllers.
//
// The programs kube-apiserver and etcd, of the same names, must be in the folder that the
// environment variable FLAKE_KUBERNETES names; scripts/kubernetes builds them.
package kubernetestest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
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
)

// Variable is the environment variable that names the folder with the programs.
const Variable = "FLAKE_KUBERNETES"

// Server is an API server and its etcd.
type Server struct {
	URL    string
	CAFile string

	tb                 testing.TB
	bin, dir           string
	port, client, peer string // of the API server, and of etcd
	args               []string
	api, etcd          *process
	http               *http.Client
}

type process struct {
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{}
}

const admin = "admin"

// Start runs an API server until the test ends. It returns once the server is ready.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, bin: os.Getenv(Variable), dir: tb.TempDir(), args: args,
		port: free(tb), client: free(tb), peer: free(tb)}
	if s.bin == "" {
		tb.Fatalf("%s is not set: use scripts/kubernetes", Variable)
	}
	s.URL, s.CAFile = "https://127.0.0.1:"+s.port, filepath.Join(s.dir, "certs", "apiserver.crt")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	s.file("account.key", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	s.file("tokens.csv", []byte(admin+",admin,admin,system:masters\n"))
	s.http = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	tb.Cleanup(func() {
		s.Kill()
		s.KillEtcd()
		if tb.Failed() {
			tb.Logf("kube-apiserver: %s\netcd: %s", s.api.end(), s.etcd.end())
		}
	})
	s.StartEtcd()
	s.Start()
	return s
}

func (s *Server) file(name string, text []byte) string {
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		s.tb.Fatal(err)
	}
	return path
}

func free(tb testing.TB) string {
	_, port, _ := net.SplitHostPort(storetest.FreeAddr(tb))
	return port
}

func (s *Server) run(name string, args ...string) *process {
	s.tb.Helper()
	p := &process{exec.Command(filepath.Join(s.bin, name), args...), new(bytes.Buffer), make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// end returns the last lines of a log, after the process has ended.
func (p *process) end() string {
	if p == nil {
		return ""
	}
	return p.log.String()[max(p.log.Len()-3000, 0):]
}

func (p *process) kill() {
	if p != nil {
		p.cmd.Process.Kill()
		<-p.done
	}
}

// StartEtcd starts etcd with the data in its folder.
func (s *Server) StartEtcd() {
	client, peer := "http://127.0.0.1:"+s.client, "http://127.0.0.1:"+s.peer
	s.etcd = s.run("etcd", "--data-dir", filepath.Join(s.dir, "etcd"), "--listen-client-urls", client,
		"--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "default="+peer, "--log-level", "error")
}

// Start starts the API server and waits until it is ready.
func (s *Server) Start() {
	s.tb.Helper()
	key := filepath.Join(s.dir, "account.key")
	s.api = s.run("kube-apiserver", append([]string{"--etcd-servers", "http://127.0.0.1:" + s.client,
		"--cert-dir", filepath.Join(s.dir, "certs"), "--secure-port", s.port, "--bind-address", "127.0.0.1",
		"--advertise-address", "127.0.0.1", "--token-auth-file", filepath.Join(s.dir, "tokens.csv"),
		"--authorization-mode", "RBAC", "--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--service-cluster-ip-range", "10.0.0.0/24", "--v", "0"}, s.args...)...)
	s.Ready()
}

// Ready waits until the API server is ready.
func (s *Server) Ready() {
	s.tb.Helper()
	for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if code, _ := s.Call(http.MethodGet, "/readyz", "", "", ""); code == http.StatusOK {
			return
		}
		select {
		case <-s.api.done:
			s.tb.Fatalf("the API server has ended: %s", s.api.end())
		default:
		}
	}
	s.tb.Fatal("the API server is not ready")
}

// Kill kills the API server.
func (s *Server) Kill() { s.api.kill() }

// Pause stops the API server until Resume.
func (s *Server) Pause()  { s.api.cmd.Process.Signal(syscall.SIGSTOP) }
func (s *Server) Resume() { s.api.cmd.Process.Signal(syscall.SIGCONT) }

// KillEtcd kills etcd.
func (s *Server) KillEtcd() { s.etcd.kill() }

// Copy kills etcd, copies its data, and starts it again.
func (s *Server) Copy(to string) {
	s.tb.Helper()
	s.KillEtcd()
	if err := os.CopyFS(to, os.DirFS(filepath.Join(s.dir, "etcd"))); err != nil {
		s.tb.Fatal(err)
	}
	s.StartEtcd()
	s.Ready()
}

// Restore kills both, replaces etcd's data, and starts both again.
func (s *Server) Restore(from string) {
	s.tb.Helper()
	s.Kill()
	s.KillEtcd()
	data := filepath.Join(s.dir, "etcd")
	if err := os.RemoveAll(data); err != nil {
		s.tb.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(from)); err != nil {
		s.tb.Fatal(err)
	}
	s.StartEtcd()
	s.Start()
}

// EtcdBytes returns how much etcd has written to its log, and how much of its database is used.
func (s *Server) EtcdBytes() (log, database int64) {
	s.tb.Helper()
	response, err := http.Get("http://127.0.0.1:" + s.client + "/metrics")
	if err != nil {
		s.tb.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		var value float64
		name, text, _ := strings.Cut(lines.Text(), " ")
		fmt.Sscan(text, &value)
		switch name {
		case "etcd_disk_wal_write_bytes_total":
			log = int64(value)
		case "etcd_mvcc_db_total_size_in_use_in_bytes":
			database = int64(value)
		}
	}
	return log, database
}

// Call sends a request with a token, or as an administrator, and returns the answer's code and body. The
// code is 0 if there is no answer.
func (s *Server) Call(method, path, token, contentType, body string) (int, string) {
	s.tb.Helper()
	request, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.tb.Fatal(err)
	}
	if token == "" {
		token = admin
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if contentType == "" {
		contentType = "application/json"
	}
	request.Header.Set("Content-Type", contentType)
	response, err := s.http.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// Must sends a request as an administrator, which must succeed.
func (s *Server) Must(method, path, body string) string {
	s.tb.Helper()
	contentType := ""
	if method == http.MethodPatch {
		contentType = "application/merge-patch+json"
	}
	code, text := s.Call(method, path, "", contentType, body)
	if code < 200 || code > 299 {
		s.tb.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	return text
}

// Namespace makes a namespace.
func (s *Server) Namespace(name string) {
	s.tb.Helper()
	s.Must(http.MethodPost, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
}

// Account makes a service account, and a role that has the rules, which are JSON. It returns a token in a file.
func (s *Server) Account(namespace, name, rules string) (tokenFile string) {
	s.tb.Helper()
	s.Must(http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts",
		fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	roles := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	s.Must(http.MethodPost, roles+"/roles", fmt.Sprintf(`{"metadata":{"name":%q},"rules":%s}`, name, rules))
	s.Must(http.MethodPost, roles+"/rolebindings", fmt.Sprintf(`{"metadata":{"name":%q},
		"subjects":[{"kind":"ServiceAccount","name":%q,"namespace":%q}],
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":%q}}`,
		name, name, namespace, name))
	return s.file(name+".token", []byte(s.Token(namespace, name)))
}

// Rules replaces the rules of an account's role.
func (s *Server) Rules(namespace, name, rules string) {
	s.tb.Helper()
	s.Must(http.MethodPatch, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/roles/"+name,
		fmt.Sprintf(`{"rules":%s}`, rules))
}

// Token returns a new token of a service account.
func (s *Server) Token(namespace, name string) string {
	s.tb.Helper()
	text := s.Must(http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+name+"/token",
		`{"spec":{"expirationSeconds":3600}}`)
	var answer struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Status.Token == "" {
		s.tb.Fatalf("no token: %v, %s", err, text)
	}
	return answer.Status.Token
}
