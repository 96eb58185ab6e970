package stores

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/flake-go/flake/internal/certstest"
)

// Errors name the key and the file.
func TestOpenEtcd(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	cert, key := ca.Issue("a", "localhost")
	_, otherKey := ca.Issue("b", "localhost")
	none := filepath.Join(ca.Dir, "none")
	for _, tt := range []struct{ ca, cert, key, want string }{
		{"", "", "", ""},
		{ca.File, "", "", ""},
		{ca.File, cert, key, ""},
		{none, "", "", `etcd.ca "DIR/none": cannot be read: no such file or directory`},
		{key, "", "", `etcd.ca "DIR/a.key": no certificate in PEM form`},
		{"", none, key, `etcd.cert "DIR/none": cannot be read: no such file or directory`},
		{"", cert, none, `etcd.key "DIR/none": cannot be read: no such file or directory`},
		{"", cert, otherKey, `etcd.cert "DIR/a.pem" and key "DIR/b.key": tls: private key does not match public key`},
	} {
		v := Values{"etcd.endpoints": {"127.0.0.1:1"}, "etcd.ca": {tt.ca}, "etcd.cert": {tt.cert}, "etcd.key": {tt.key}}
		store, err := etcdKind.Open(func() Values { return v }, false)
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), ca.Dir, "DIR")
		}
		if got != tt.want || (store == nil) != (err != nil) {
			t.Errorf("%+v:\ngot  %s\nwant %s", tt, got, tt.want)
		}
	}
}
