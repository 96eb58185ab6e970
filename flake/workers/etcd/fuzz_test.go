package etcd

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzDecode decodes an answer as a list and as another reply. Decoding stays within the limits,
// and has the same result however the answer is split.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"header":{"cluster_id":"1","revision":"3","raft_term":"4"},` +
			`"kvs":[{"key":"YQ==","value":"Yg==","lease":"0"}],"more":true,"count":"1"}`,
		`{"header":{"revision":"3"},"succeeded":true,` +
			`"responses":[{"response_range":{"kvs":[{"key":"YQ==","value":"Yg=="}]}},{"response_put":{}}]}`,
		`{"header":{"revision":"1"},"token":"a.1"}`,
		`{"error":"etcdserver: permission denied","message":"etcdserver: permission denied","code":7}`,
		`{"kvs":[{}],"kvs":[null],"header":null}`, `{"kvs":[`, `{"kvs":{}}`, `[{}]`, `{}{}`, "404 page not found", "",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, said string, list bool) {
		decode := func(body io.Reader) (r reply, err error) {
			if list {
				r.pairs = make(map[string]string)
			}
			return r, r.decode(&text{ctx: t.Context(), body: body, left: maxAnswer})
		}
		r, err := decode(strings.NewReader(said))
		if len(r.pairs) > maxPairs || !list && r.pairs != nil {
			t.Errorf("%d pairs", len(r.pairs))
		}
		for key, value := range r.pairs {
			if max(len(key), len(value)) > maxText {
				t.Errorf("%q: %q", key, value)
			}
		}
		if err == nil && !strings.HasPrefix(strings.TrimLeft(said, " \t\r\n"), "{") {
			t.Errorf("%q is taken for an answer", said)
		}
		again, errAgain := decode(iotest.OneByteReader(strings.NewReader(said)))
		if (errAgain == nil) != (err == nil) || errors.Is(errAgain, errLong) != errors.Is(err, errLong) ||
			len(again.pairs) != len(r.pairs) {
			t.Errorf("byte by byte: %d pairs, %v; in one piece: %d, %v", len(again.pairs), errAgain, len(r.pairs), err)
		}
	})
}
