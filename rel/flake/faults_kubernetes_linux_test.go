package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/kubernetes"
	"github.com/flake-go/flake/flake/workers/kubernetes/kubernetestest"
	"github.com/flake-go/flake/flake/workers/storetest"
)

// rigKubernetes is a ConfigMap of a real API server.
type rigKubernetes struct {
	t *testing.T
	*kubernetestest.Server
	account string // the folder that pods see as their service account
	name    string // of the ConfigMap
}

// rigNamespace is also the name of the pods' service account.
const rigNamespace = "flake"

// rigRights are the least rights of a node, for two ConfigMaps.
const rigRights = `[
	{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
	{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["flake-numbers", "other"],
		"verbs": ["get", "patch"]},
	{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
	{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["flake-numbers", "other"],
		"verbs": ["get"]}]`

func newRigKubernetes(t *testing.T) rigStore {
	k := rigKubernetes{t, kubernetestest.Start(t), t.TempDir(), kubernetes.DefaultName}
	k.Namespace(rigNamespace)
	writeFile(t, filepath.Join(k.account, "token"), readFile(t, k.Account(rigNamespace, rigNamespace, rigRights)))
	writeFile(t, filepath.Join(k.account, "namespace"), rigNamespace)
	writeFile(t, filepath.Join(k.account, "ca.crt"), readFile(t, k.CAFile))
	k.admitted()
	return k
}

// admitted waits until the API server accepts a pod's requests.
func (k rigKubernetes) admitted() {
	k.t.Helper()
	s, err := k.open()
	if err != nil {
		k.t.Fatal(err)
	}
	if !soon(func() bool { _, err = s.List(k.t.Context(), ""); return err == nil }) {
		k.t.Fatal(err)
	}
}

// link makes a machine a pod. The link has the API server's certificate, so that it sees which requests are writes.
func (k rigKubernetes) link(m *machine) (storetest.Link, string) {
	tables := fmt.Sprintf("store = \"kubernetes\"\n[kubernetes]\nname = %q\n", k.name)
	if k.name != kubernetes.DefaultName {
		return nil, tables // the machine is a pod already
	}
	m.env = []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=443"}
	m.sh("mount -t tmpfs none /var/run && mkdir -p %[1]s && mount --bind %[2]s %[1]s",
		"/var/run/secrets/kubernetes.io/serviceaccount", k.account)
	own, err := tls.LoadX509KeyPair(k.CAFile, strings.TrimSuffix(k.CAFile, "crt")+"key")
	if err != nil {
		k.t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{own}, InsecureSkipVerify: true}
	l := storetest.NewProxy(k.t)
	l.Write = func(sent []byte) bool { return bytes.HasPrefix(sent, []byte("PATCH ")) }
	return l.Forward(tls.NewListener(m.listen("127.0.0.1:443"), config), func() (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", strings.TrimPrefix(k.URL, "https://"), config)
	}), tables
}

func (k rigKubernetes) open() (workers.Store, error) {
	return kubernetes.New(kubernetes.Config{URL: k.URL, CAFile: k.CAFile, TokenFile: filepath.Join(k.account, "token"),
		Namespace: rigNamespace, Name: k.name})
}

// path returns the path of the ConfigMap.
func (k rigKubernetes) path() string {
	return "/api/v1/namespaces/" + rigNamespace + "/configmaps/" + k.name
}

func (k rigKubernetes) remove(key string) error {
	patch := fmt.Sprintf(`{"data":{%q:null}}`, strings.ReplaceAll(key, "/", "."))
	if code, text := k.Call(http.MethodPatch, k.path(), "", "application/merge-patch+json", patch); code != http.StatusOK {
		return fmt.Errorf("%d %s", code, text)
	}
	return nil
}

func (k rigKubernetes) save(folder string) {
	k.Copy(folder)
	k.admitted()
}

func (k rigKubernetes) restore(folder string) {
	k.Restore(folder)
	k.admitted()
	os.RemoveAll(folder)
}

func (k rigKubernetes) another() rigStore {
	k.name = "other"
	return k
}

func (k rigKubernetes) actions() []rigAction {
	return []rigAction{
		{2, "kill -9 of the API server", func(_ *rig, _ *rigNode, x *rand.Rand) {
			k.Kill()
			time.Sleep(lasts(x, 0.1, 1.5)) // how long the fault lasts
			k.Start()
			k.admitted()
		}, false},
		{2, "the API server paused", func(_ *rig, _ *rigNode, x *rand.Rand) {
			k.Pause()
			time.Sleep(lasts(x, 0.3, 2)) // how long the fault lasts
			k.Resume()
			k.admitted()
		}, false},
		{2, "etcd below the API server killed", func(_ *rig, _ *rigNode, x *rand.Rand) {
			k.KillEtcd()
			time.Sleep(lasts(x, 0.1, 1.5)) // how long the fault lasts
			k.StartEtcd()
			k.admitted()
		}, false},
		{2, "etcd below the API server restored, nodes notice", func(r *rig, n *rigNode, x *rand.Rand) {
			r.passed()
			folder := r.backup(1)
			os.RemoveAll(folder)
			r.forgotten(n, x, func() { k.save(folder) }, func(other *rigNode) {
				r.unseen(func() { k.restore(folder) })
				other.start()
			})
		}, true},
		{2, "the ConfigMap deleted", func(r *rig, n *rigNode, x *rand.Rand) {
			r.passed()
			r.forgotten(n, x, func() {}, func(other *rigNode) {
				r.unseen(func() {
					k.Must(http.MethodDelete, k.path(), "")
					if x.IntN(2) == 0 {
						other.wipe()
					}
					other.start()
				})
			})
		}, true},
		{2, "the rights withdrawn for a time", func(_ *rig, _ *rigNode, x *rand.Rand) {
			k.Rules(rigNamespace, rigNamespace, "[]")
			time.Sleep(lasts(x, 0.3, 2)) // how long the fault lasts
			k.Rules(rigNamespace, rigNamespace, rigRights)
			k.admitted()
		}, false},
		{2, "the token not valid for a time", func(r *rig, _ *rigNode, x *rand.Rand) {
			token := filepath.Join(k.account, "token")
			writeFile(r.t, token, "expired")
			time.Sleep(lasts(x, 0.3, 2)) // how long the fault lasts
			writeFile(r.t, token, k.Token(rigNamespace, rigNamespace))
		}, false},
	}
}
