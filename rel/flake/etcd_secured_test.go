package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
	"github.com/flake-go/flake/internal/certstest"
)

// If etcd requires TLS and users, and the node's settings do not match, the error says what to set.
func TestEtcdRefusedSecured(t *testing.T) {
	t.Parallel()
	ca, other := certstest.NewCA(t, "ca"), certstest.NewCA(t, "other")
	secured, open := startSecuredEtcd(t, ca), etcdtest.Start(t, 1).Endpoints()[0]
	wrong := filepath.Join(t.TempDir(), "wrong")
	writeFile(t, wrong, "wrong\n")
	as := func(user string) string {
		return fmt.Sprintf("[etcd]\nca = %q\nuser = %q\npassword_file = %q", ca.File, user, wrong)
	}
	for name, tt := range map[string]struct {
		endpoint, more, want, do string
	}{
		"wrong CA": {secured, fmt.Sprintf("[etcd]\nca = %q", other.File), "x509: certificate signed by unknown authority",
			"set etcd.ca to the CA of etcd's certificate"},
		"no CA": {"https://" + secured, "", "x509: certificate signed by unknown authority",
			"set etcd.ca to the CA of etcd's certificate"},
		"TLS wanted": {secured, "start_timeout = 2", "",
			"is it up, and does it require TLS? See etcd.endpoints and etcd.ca"},
		"no TLS there": {open, fmt.Sprintf("start_timeout = 2\n[etcd]\nca = %q", ca.File), "",
			"is it up, and does it require TLS? See etcd.endpoints and etcd.ca"},
		"wrong password": {secured, as("root"), "authentication failed, invalid user ID or password",
			"see etcd.user and etcd.password_file"},
		"no such user": {secured, as("nobody"), "authentication failed, invalid user ID or password",
			"see etcd.user and etcd.password_file"},
		"no user": {secured, fmt.Sprintf("[etcd]\nca = %q", ca.File), "user name is empty",
			"set etcd.user and etcd.password_file"},
		"no permission": {secured, as("guest"), "permission denied",
			"etcd.user needs a role that may read and write all keys that begin with flake/"},
	} {
		t.Run(name, func(t *testing.T) {
			config := etcdConfig(t, []string{tt.endpoint}, time.Minute, tt.more)
			for _, args := range [][]string{{"-noinput", "-setcookie", cookie}, {"workers"}} {
				out := inTime(t, tt.want, func() string { return refusal(t, append(args, "-config", config)...) })
				for _, want := range []string{"etcd at http", strings.TrimPrefix(tt.endpoint, "https://"), tt.want, tt.do} {
					if !strings.Contains(out, want) {
						t.Errorf("got %s\nwant %s", out, want)
					}
				}
				t.Log(out)
			}
		})
	}
}

// startSecuredEtcd starts an etcd with a certificate of ca and two users: root, with the password
// "secret", and guest, with the password "wrong" and no permissions.
func startSecuredEtcd(t *testing.T, ca *certstest.CA) (endpoint string) {
	t.Helper()
	endpoint = loopback + ":" + freePort(t)
	peers := "http://" + loopback + ":" + freePort(t)
	cert, key := ca.Issue("etcd", loopback)
	spawn(t, "", "etcd", "--data-dir", t.TempDir(), "--listen-client-urls", "https://"+endpoint,
		"--advertise-client-urls", "https://"+endpoint,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers,
		"--cert-file", cert, "--key-file", key, "--bcrypt-cost", "4", // otherwise it hashes passwords slowly
		"--log-level", "error")
	client := http.Client{Transport: &http.Transport{TLSClientConfig: ca.Client("operator", loopback)}}
	defer client.CloseIdleConnections()
	for _, request := range [][2]string{
		{"user/add", `{"name": "root", "password": "secret"}`}, {"user/grant", `{"user": "root", "role": "root"}`},
		{"user/add", `{"name": "guest", "password": "wrong"}`}, {"enable", "{}"},
	} {
		await(t, request[0], func() bool {
			response, err := client.Post("https://"+endpoint+"/v3/auth/"+request[0], "application/json",
				strings.NewReader(request[1]))
			if err != nil {
				return false
			}
			defer response.Body.Close()
			answer, err := io.ReadAll(response.Body)
			// An earlier request may have been performed although its answer arrived too late.
			return response.StatusCode == http.StatusOK || err == nil && strings.Contains(string(answer), "already exists")
		})
	}
	return endpoint
}
