package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/internal/certstest"
)

const loopback = "127.0.0.1" // of the node and its callers

// tlsTable is [node.tls] with files of ca.
func tlsTable(ca *certstest.CA, verify string) string {
	cert, key := ca.Issue("flake", loopback)
	return fmt.Sprintf("[node.tls]\ncert = %q\nkey = %q\nca = %q\nverify = %q\n", cert, key, ca.File, verify)
}

// startTLSNode starts the command with more lines for the file's [node].
func startTLSNode(t *testing.T, table string) (n *flakeNode, file string) {
	t.Helper()
	file = configFile(t, table)
	return startNode(t, "", "-config", file), file
}

// A distConf is Erlang's TLS configuration.
type distConf struct {
	trusts *certstest.CA // nil: anyone
	shows  *certstest.CA // nil: no certificate
	more   string        // options for both directions
	host   string        // in the certificate; empty: loopback
}

// flags returns the flags of an Erlang node with this configuration.
func (d distConf) flags(t *testing.T, name string) []string {
	t.Helper()
	client, server := "{verify, verify_none}", "{verify, verify_none}"
	if d.trusts != nil {
		client = fmt.Sprintf("{verify, verify_peer}, {cacertfile, %q}", d.trusts.File)
		server = client + ", {fail_if_no_peer_cert, true}"
	}
	if d.shows != nil {
		cert, key := d.shows.Issue("caller", cmp.Or(d.host, loopback))
		shown := fmt.Sprintf(", {certfile, %q}, {keyfile, %q}", cert, key)
		client, server = client+shown, server+shown
	}
	file := filepath.Join(t.TempDir(), "dist.conf")
	text := fmt.Sprintf("[{server, [%s%s]}, {client, [%s%s]}].\n", server, d.more, client, d.more)
	writeFile(t, file, text)
	return []string{"-name", name + "@" + loopback, "-proto_dist", "inet_tls", "-ssl_dist_optfile", file}
}

const tls13 = ", {versions, ['tlsv1.3']}"

// chain returns a CA two levels below ca.
func chain(ca *certstest.CA) *certstest.CA { return ca.Under("first").Under("second") }

func TestTLS(t *testing.T) {
	t.Parallel()
	const many = "20000" // calls: more than MaxRaw, and twice what Erlang queues for a connection
	for name, tt := range map[string]struct {
		verify string
		caller func(*certstest.CA) distConf
	}{
		"server only": {"none", func(ca *certstest.CA) distConf { return distConf{trusts: ca} }},
		"unverified":  {"none", func(*certstest.CA) distConf { return distConf{} }},
		"mutual":      {"peer", func(ca *certstest.CA) distConf { return distConf{trusts: ca, shows: ca} }},
		"TLS 1.3":     {"peer", func(ca *certstest.CA) distConf { return distConf{trusts: ca, shows: ca, more: tls13} }},
		"chain":       {"peer", func(ca *certstest.CA) distConf { return distConf{trusts: ca, shows: chain(ca)} }},
		"chain, TLS 1.3": {"peer",
			func(ca *certstest.CA) distConf { return distConf{trusts: ca, shows: chain(ca), more: tls13} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := certstest.NewCA(t, "ca")
			n, file := startTLSNode(t, tlsTable(ca, tt.verify))
			n.erl(tt.caller(ca).flags(t, "caller"), "ping", "get", "pipelined="+many, "send_request="+many, "functions",
				"monitors")
			for _, args := range [][]string{{"get", "-config", file}, {"eval", "-config", file, "flake_server:id(62)."}} {
				if p := spawn(t, n.port, command, args...); p.wait() != 0 || p.output() == "" {
					t.Errorf("%q: %s", args, p.output())
				}
			}
		})
	}
}

// Whether the caller or the node refuses the connection, the node logs the refusal once.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	ca, other := certstest.NewCA(t, "ca"), certstest.NewCA(t, "other")
	elsewhere, elsewhereKey := ca.Issue("elsewhere", "elsewhere.example.com")
	for name, tt := range map[string]struct {
		table  string
		caller []string
		want   string
	}{
		"plain caller": {tlsTable(ca, "none"), nil,
			"first record does not look like a TLS handshake: the caller must speak TLS (-proto_dist inet_tls)"},
		"plain node": {"", distConf{}.flags(t, "caller"), "message of"},
		"caller without a cert": {tlsTable(ca, "peer"), distConf{trusts: ca}.flags(t, "caller"),
			"client didn't provide a certificate"},
		"caller of another CA": {tlsTable(ca, "peer"), distConf{trusts: ca, shows: other}.flags(t, "caller"),
			"certificate signed by unknown authority"},
		"caller that trusts another CA": {tlsTable(ca, "peer"), distConf{trusts: other, shows: ca}.flags(t, "caller"),
			"remote error: tls: unknown certificate authority"},
		"node's cert for another host": {
			fmt.Sprintf("[node.tls]\ncert = %q\nkey = %q\nverify = 'none'\n", elsewhere, elsewhereKey),
			distConf{trusts: ca}.flags(t, "caller"), "remote error: tls: handshake failure"},
		"TLS 1.1": {tlsTable(ca, "none"), distConf{more: ", {versions, ['tlsv1.1']}"}.flags(t, "caller"),
			"client offered only unsupported versions"},
		"wrong cookie": {tlsTable(ca, "none"), append(distConf{}.flags(t, "caller"), "-setcookie", "wrong"), "wrong cookie"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, _ := startTLSNode(t, tt.table)
			n.erl(tt.caller, "refused")
			const message = "connection refused"
			await(t, "the refusal is logged", func() bool { return strings.Contains(n.output(), message) })
			if out := n.output(); strings.Count(out, message) != 1 || !strings.Contains(out, tt.want) {
				t.Errorf("logged %s\nwant once: %s", out, tt.want)
			}
		})
	}
}

// Connections of silent callers, before TLS or after, are closed, and do not keep others out.
func TestTLSSilence(t *testing.T) {
	t.Parallel()
	ca := certstest.NewCA(t, "ca")
	n, _ := startTLSNode(t, tlsTable(ca, "none"))
	silent := dial(t, n.addr)
	half := dial(t, n.addr)
	if err := tls.Client(half, &tls.Config{RootCAs: ca.Pool, ServerName: loopback}).Handshake(); err != nil {
		t.Fatal(err)
	}
	n.erl(distConf{trusts: ca}.flags(t, "caller"), "get")
	untilClosed(t, silent)
	untilClosed(t, half)
}

// A new certificate is used without a signal, and connected callers stay connected. An invalid one
// changes nothing.
func TestTLSReload(t *testing.T) {
	t.Parallel()
	ca := certstest.NewCA(t, "ca")
	n, file := startTLSNode(t, tlsTable(ca, "peer"))
	mustGet := func() {
		t.Helper()
		if p := spawn(t, n.port, command, "get", "-config", file); p.wait() != 0 {
			t.Error(p.output())
		}
	}
	caller := spawnErl(t, n.port, distConf{trusts: ca, shows: ca}.flags(t, "caller"), steady)
	caller.await("READY")
	before := shown(t, n.addr, ca)

	renewed := func() {
		t.Helper()
		read := strings.Count(n.output(), "read the changed TLS files")
		ca.Issue("flake", loopback) // replaces the old certificate
		await(t, "the new certificate is read", func() bool {
			return strings.Count(n.output(), "read the changed TLS files") > read
		})
	}
	renewed()
	after := shown(t, n.addr, ca)
	if after.Equal(before) {
		t.Error("the old certificate is shown")
	}
	mustGet()

	writeFile(t, filepath.Join(ca.Dir, "flake.key"), "no key")
	n.awaitText("cannot use the changed TLS files")
	if !shown(t, n.addr, ca).Equal(after) {
		t.Error("another certificate is shown")
	}
	renewed()
	mustGet()
	if got := strings.Count(n.output(), "cannot use the changed TLS files"); got != 1 {
		t.Errorf("the error was logged %d times, want once", got)
	}
	n.cmd.Process.Signal(os.Interrupt)
	n.wait()
	wantChecks(t, caller, steady) // it stayed connected to the end
}

// shown returns the certificate that the node shows now.
func shown(t *testing.T, addr string, ca *certstest.CA) *x509.Certificate {
	t.Helper()
	c, err := tls.Dial("tcp", addr, ca.Client("looker", loopback))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0]
}

// Both doors say at startup that their certificate has expired, and again when callers refuse it.
func TestExpiredCertificates(t *testing.T) {
	t.Parallel()
	ca := certstest.NewCA(t, "ca")
	cert, key := ca.IssueFor("flake", loopback, time.Now().Add(-48*time.Hour), time.Now().Add(-time.Hour))
	files := fmt.Sprintf("cert = %q\nkey = %q\n", cert, key)
	n := startNode(t, "", "-config", configFile(t, "[node.tls]\nverify = 'none'\n"+files+
		"[http]\nlisten = '127.0.0.1:0'\n[http.tls]\n"+files))
	for _, table := range []string{"node.tls", "http.tls"} {
		if !n.says(`it: replace it" keys=` + table) {
			t.Errorf("nothing is said about %s", table)
		}
	}
	url := n.await("  HTTP ")
	for _, address := range []string{n.addr, strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/")} {
		c, err := tls.Dial("tcp", address, ca.Client("looker", loopback))
		if err == nil {
			c.Close()
			t.Errorf("%s: the expired certificate was accepted", address)
		}
	}
	await(t, "both doors log the cause", func() bool {
		return strings.Count(n.output(), "this node's certificate is not valid now, only from") == 2
	})
}

// Nodes that we dial must prove their identity.
func TestDialTLS(t *testing.T) {
	ca, other := certstest.NewCA(t, "ca"), certstest.NewCA(t, "other")
	s, port := startHere(t, func(cfg *config.Config) {
		cert, key := ca.Issue("flake", loopback)
		cfg.Node.TLS = config.TLS{On: true, Cert: cert, Key: key, CA: ca.File, Verify: config.VerifyPeer}
	})
	defer s.Stop()
	for name, flags := range map[string][]string{
		"stranger@127.0.0.1": distConf{trusts: ca, shows: other}.flags(t, "stranger"),
		"misnamed@127.0.0.1": distConf{trusts: ca, shows: ca, host: "elsewhere.example.com"}.flags(t, "misnamed"),
		"plain@127.0.0.1":    {"-name", "plain@127.0.0.1"},
	} {
		spawnErl(t, port, flags, "dialled").await("READY")
		if err := s.Node.Connect(name); err == nil {
			t.Errorf("connected to %s", name)
		}
	}
	friend := spawnErl(t, port, distConf{trusts: ca, shows: ca}.flags(t, "friend"), "dialled")
	friend.await("READY")
	if err := s.Node.Connect("friend@127.0.0.1"); err != nil {
		t.Error(err)
	}
	wantChecks(t, friend, "dialled")
}

// Faults in the files are reported at startup.
func TestTLSFiles(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(command, "-noinput", "-config",
		configFile(t, "[node.tls]\ncert = 'none.pem'\nkey = 'none.key'\nverify = 'none'\n")).CombinedOutput()
	const want = `flake: node.tls: cert "none.pem": cannot be read: no such file or directory`
	if exit, _ := errors.AsType[*exec.ExitError](err); exit == nil || exit.ExitCode() != exitUsage ||
		!strings.Contains(string(out), want) {
		t.Errorf("%v: %s", err, out)
	}
}
