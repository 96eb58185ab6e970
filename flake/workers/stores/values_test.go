package stores

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/flake/workers/postgres"
)

// Each key accepts the values that its Must describes.
func TestValid(t *testing.T) {
	for key, values := range map[string][2][]string{ // valid and invalid ones
		"etcd.endpoints": {{"a:1", "10.0.0.1:2379", "[::1]:65535", "http://a:1", "https://a:1"},
			{"", "a", ":1", "a:", "a:0", "a:65536", "ftp://a:1", "http://", "a\x00:1", "http://a:1/x"}},
		"etcd.user":            {{"", "flake", "Jörg K."}, {"a\x00", "a\n", "\x80"}},
		"etcd.ca":              {{"", "/a b\n"}, {"a\x00"}},
		"postgres.table":       {{"public.t"}, {"a\tb"}},
		"kubernetes.namespace": {{"a", "a-b", "0"}, {"", "-a", "a-", "a.b", "A", strings.Repeat("a", 64)}},
		"kubernetes.name":      {{"a", "a.b-c"}, {"", ".a", "a.", "A", strings.Repeat("a", 254)}},
	} {
		k := KeyOf(key)
		for i, all := range values {
			for _, value := range all {
				if k.Valid(value) != (i == 0) {
					t.Errorf("%s: %q is valid: %t", key, value, i > 0)
				}
			}
		}
	}
	if k := KeyOf("none"); k.Name != "" || Of("none") != nil {
		t.Errorf("%+v, %v", k, Of("none"))
	}
	for i, name := range Names() {
		if Of(name) != Kinds[i] {
			t.Errorf("%s is the kind %+v", name, Of(name))
		}
	}
	if n := len(Names()); n != len(Kinds) {
		t.Errorf("%d names of %d kinds", n, len(Kinds))
	}
}

// A check names the keys that lack another, or exclude each other.
func TestCheck(t *testing.T) {
	endpoints := Values{"etcd.endpoints": {"a:1"}}
	login := endpoints.Replace("etcd.user", []string{"u"})
	url := func(text string) Values { return Values(nil).Replace("postgres.url", []string{text}) }
	file := []string{"f"}
	for _, tt := range []struct {
		kind *Kind
		v    Values
		want string // the keys with faults
	}{
		{etcdKind, nil, "etcd.endpoints"},
		{etcdKind, endpoints, ""},
		{etcdKind, login, "etcd.user"},
		{etcdKind, login.Replace("etcd.password_file", file), ""},
		{etcdKind, endpoints.Replace("etcd.password_file", file), "etcd.password_file"},
		{etcdKind, endpoints.Replace("etcd.cert", file), "etcd.cert"},
		{etcdKind, endpoints.Replace("etcd.cert", file).Replace("etcd.key", file), ""},
		{etcdKind, Values{"etcd.key": file}, "etcd.endpoints etcd.key"},
		{postgresKind, nil, ""},
		{postgresKind, url("postgres://u:p@a/b"), ""},
		{postgresKind, url("postgres://u@a/b").Replace("postgres.password_file", file), ""},
		{postgresKind, url("postgres://u:p@a/b").Replace("postgres.password_file", file), "postgres.password_file"},
		{postgresKind, url("host=a\x7f").Replace("postgres.password_file", file), ""},
		{kubernetesKind, nil, ""},
	} {
		var keys []string
		for _, f := range tt.kind.Check(tt.v) {
			keys = append(keys, f.Key)
		}
		if got := strings.Join(keys, " "); got != tt.want {
			t.Errorf("%v: faults of %s, want %s", tt.v, got, tt.want)
		}
	}
	if len(endpoints) != 1 {
		t.Errorf("Replace changed the values: %v", endpoints)
	}
}

// The password is read when the store is opened.
func TestPasswordFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	for _, v := range []Values{
		{"etcd.endpoints": {"127.0.0.1:1"}, "etcd.user": {"u"}, "etcd.password_file": {file}},
		{"postgres.url": {"postgres://u@127.0.0.1:1/b"}, "postgres.password_file": {file}},
	} {
		kind := postgresKind
		if v["etcd.endpoints"] != nil {
			kind = etcdKind
		}
		if _, err := kind.Open(func() Values { return v }, false); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("without the file: %v", err)
		}
		if err := os.WriteFile(file, []byte("p\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		password, err := secret(v, kind.Name+".password_file")
		if err != nil || password != "p" {
			t.Errorf("%q, %v", password, err)
		}
		if store, err := kind.Open(func() Values { return v }, false); err != nil || store == nil {
			t.Errorf("%v, %v", store, err)
		}
		os.Remove(file)
	}
}

// Without a CA or a certificate, etcd is asked without TLS. Without a file, the password is that in the URL.
func TestWithoutFiles(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	addr := l.Addr().String()
	for kind, tt := range map[*Kind]struct {
		values       Values
		answer, want string
	}{
		etcdKind: {Values{"etcd.endpoints": {addr}}, "", "POST "},
		postgresKind: {Values{"postgres.url": {"postgres://u:secret@" + addr + "/b?sslmode=disable"}},
			"R\x00\x00\x00\x08\x00\x00\x00\x03", "secret"}, // asks for the password
	} {
		store, err := kind.Open(func() Values { return tt.values }, false)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(ctx)
		go store.Get(ctx, "a")
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, tt.answer)
		var got []byte
		for b := make([]byte, 1<<10); !bytes.Contains(got, []byte(tt.want)); {
			n, err := c.Read(b)
			if got = append(got, b[:n]...); err != nil {
				t.Errorf("%s: %q, %v", kind.Name, got, err)
				break
			}
		}
		cancel()
		c.Close()
	}
}

// The advice on an error names the keys to look at.
func TestAdvise(t *testing.T) {
	failed := errors.New("failed")
	untrusted := &tls.CertificateVerificationError{Err: x509.HostnameError{}}
	unknown := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	for _, tt := range []struct {
		kind *Kind
		err  error
		want []string
	}{
		{etcdKind, failed, nil},
		{etcdKind, unknown, []string{"etcd.ca"}},
		{etcdKind, untrusted, []string{"etcd.endpoints"}},
		{etcdKind, etcd.ErrPassword, []string{"etcd.user", "etcd.password_file"}},
		{etcdKind, etcd.ErrNoUser, []string{"etcd.user", "etcd.password_file"}},
		{etcdKind, etcd.ErrPermission, []string{"etcd.user", "ids/"}},
		{etcdKind, &etcd.EndpointError{Err: failed}, []string{"etcd.endpoints", "etcd.ca"}},
		{postgresKind, failed, nil},
		{postgresKind, untrusted, []string{"postgres.url"}},
		{postgresKind, &postgres.EndpointError{Err: failed}, []string{"postgres.url"}},
		{kubernetesKind, failed, nil},
		{kubernetesKind, untrusted, []string{"CA"}},
	} {
		got := tt.kind.Advise(fmt.Errorf("%w: x", tt.err), "ids")
		if (got == "") != (tt.want == nil) || slices.ContainsFunc(tt.want, func(key string) bool {
			return !strings.Contains(got, key)
		}) {
			t.Errorf("%s, %v: %q, want %q", tt.kind.Name, tt.err, got, tt.want)
		}
	}
}
