package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flake-go/flake/flake/workers"
)

// What each call sends, and what it returns for an answer. In base64, "a" is YQ==, "b" Yg==,
// "p/" cC8=, "p0" cDA= and "1" MQ==.
func TestMessages(t *testing.T) {
	var path, asked, text string
	s := open(t, Config{Endpoints: []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		path, asked = r.URL.Path, string(body)
		io.WriteString(w, `{"header":{"cluster_id":"255","revision":"1"}`+text+"}")
	})}})
	one := map[string]string{"a": "1"}
	const put = `"success":[{"request_put":{"key":"YQ==","value":"MQ=="}}]}`
	for _, tt := range []struct {
		call func() (any, error)
		path string
		asks string
		text string
		want any
	}{
		{func() (any, error) { return s.Get(t.Context(), "a", "b") }, "kv/txn",
			`{"success":[{"request_range":{"key":"YQ=="}},{"request_range":{"key":"Yg=="}}]}`,
			`,"succeeded":true,"responses":[{"response_range":{}},{"response_range":{"kvs":[{"key":"Yg==","value":"MQ=="}]}}]`,
			[]string{"", "1"}},
		{func() (any, error) { return s.List(t.Context(), "p/") }, "kv/range", `{"key":"cC8=","range_end":"cDA="}`,
			`,"kvs":[{"key":"YQ==","value":"MQ=="},{"key":"Yg=="}]`, map[string]string{"a": "1", "b": ""}},
		{func() (any, error) { return s.List(t.Context(), "p/") }, "kv/range", `{"key":"cC8=","range_end":"cDA="}`,
			``, map[string]string{}},
		{func() (any, error) { return s.Swap(t.Context(), map[string]string{"a": ""}, one) }, "kv/txn",
			`{"compare":[{"create_revision":"0","key":"YQ==","target":"CREATE"}],` + put,
			`,"succeeded":true`, true},
		{func() (any, error) { return s.Swap(t.Context(), map[string]string{"b": "1"}, one) }, "kv/txn",
			`{"compare":[{"key":"Yg==","target":"VALUE","value":"MQ=="}],` + put,
			``, false},
		{func() (any, error) { return s.Cluster(t.Context()) }, status, `{}`, `,"other":[{}]`, "ff"},
	} {
		text = tt.text
		got, err := tt.call()
		var is, want any
		if err := errors.Join(err, json.Unmarshal([]byte(asked), &is), json.Unmarshal([]byte(tt.asks), &want)); err != nil {
			t.Error(err)
		}
		if path != "/v3/"+tt.path || !reflect.DeepEqual(is, want) || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: asked for %s and got %v; want %s and %v", path, asked, got, tt.asks, tt.want)
		}
	}
}

// Answers that are not lists.
func TestBadList(t *testing.T) {
	is := func(status int, text string) bool {
		return list(open(t, Config{Endpoints: []string{serve(t, answer(status, text))}})) == nil
	}
	for _, kvs := range []string{`1`, `{}`, `[1]`, `[{"key":1}]`, `[{}`, `[{}}`, `[]]`, `[],`, `[],1:2`, `[]}{`, `[]} 1`} {
		text := `{"header":{"revision":"1"},"kvs":` + kvs
		if json.Valid([]byte(kvs)) {
			text += "}"
		}
		if is(200, text) {
			t.Errorf("%s was taken for a list", text)
		}
	}
	if is(503, `{"header":{"revision":"1"},"kvs":[]}`) {
		t.Error("an error was taken for a list")
	}
}

// A user's token is requested once, and again if it is not valid. If etcd has no users there
// is no token.
func TestAsUser(t *testing.T) {
	const token = `{"header":{"revision":"1"},"token":"t"}`
	for name, tt := range map[string]struct {
		login  http.HandlerFunc
		first  http.HandlerFunc // answers the first request
		want   error
		asked  []string // of two calls, with tokens
		unsure bool     // the first call may fail
	}{
		"good": {answer(200, token), nil, nil, []string{"authenticate", "range t", "range t"}, false},
		"without users": {answer(400, `{"message":"etcdserver: authentication is not enabled"}`), nil, nil,
			[]string{"authenticate", "range ", "authenticate", "range "}, false},
		"refused": {answer(400, `{"message":"etcdserver: authentication failed, invalid user ID or password"}`), nil,
			workers.ErrRefused, []string{"authenticate", "authenticate"}, false},
		"expired": {answer(200, token), answer(401, `{"message":"etcdserver: invalid auth token"}`), nil,
			[]string{"authenticate", "range t", "authenticate", "range t", "range t"}, false},
		"silent": {answer(200, token), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil,
			[]string{"authenticate", "range t", "authenticate", "range t"}, true},
	} {
		var mu sync.Mutex
		var asked []string
		first := tt.first
		front := serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if strings.HasSuffix(r.URL.Path, "authenticate") {
				var got map[string]string
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got["name"] != "u" || got["password"] != "p" {
					t.Errorf("%s: %v, %v", name, got, err)
				}
				asked = append(asked, "authenticate")
				tt.login(w, r)
				return
			}
			asked = append(asked, fmt.Sprintf("range %s", r.Header.Get("Authorization")))
			if first != nil {
				now := first
				first = nil
				now(w, r)
				return
			}
			answer(200, `{"header":{"revision":"1"}}`)(w, r)
		})
		s := open(t, Config{Login: as("u", "p"), Endpoints: []string{front}})
		if err := list(s); !errors.Is(err, tt.want) && !tt.unsure || tt.unsure && err == nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := list(s); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		mu.Lock()
		if !slices.Equal(asked, tt.asked) {
			t.Errorf("%s: asked %q", name, asked)
		}
		mu.Unlock()
	}
}
