package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
)

// hostileEtcd forwards requests to etcd, or answers them like an attacker.
type hostileEtcd struct {
	etcd http.Handler

	mu     sync.Mutex
	attack etcdAttack
	of     string // the last part of the path of the requests to attack; empty: all
	count  int    // of hostile answers so far
}

// etcdAttack writes a part of an answer.
type etcdAttack func(w io.Writer, part int) error

func (e *hostileEtcd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	attack, of := e.attack, e.of
	e.mu.Unlock()
	if attack == nil || of != "" && of != path.Base(r.URL.Path) {
		e.etcd.ServeHTTP(w, r)
		return
	}
	for i := 0; i < 60<<20/etcdPart && attack(w, i) == nil; i++ {
	}
	e.mu.Lock()
	e.count++
	e.mu.Unlock()
}

func (e *hostileEtcd) begin(attack etcdAttack, of string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.attack, e.of, e.count = attack, of, 0
}

func (e *hostileEtcd) answers() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.count
}

// etcdPart is the approximate size of a part of a hostile answer.
const etcdPart = 12 << 10

var hostileAnswers = map[string]etcdAttack{
	"pairs":       again(`{"kvs":[{}`, ",{}"),
	"responses":   again(`{"header":{"revision":"1"},"responses":[{}`, ",{}"),
	"objects":     again(`{"other":[{}`, ",{}"),
	"brackets":    again("", "["),
	"a message":   again(`{"message":"`, "x"),
	"a token":     again(`{"token":"`, "x"),
	"other pairs": otherPairs,
}

// again writes begin once, and then text repeatedly.
func again(begin, text string) etcdAttack {
	part := strings.Repeat(text, etcdPart/len(text))
	return func(w io.Writer, i int) error {
		if i == 0 {
			io.WriteString(w, begin)
		}
		_, err := io.WriteString(w, part)
		return err
	}
}

// otherPairs writes pairs of long keys and values, all different.
func otherPairs(w io.Writer, i int) error {
	begin := ","
	if i == 0 {
		begin = `{"header":{"revision":"1"},"kvs":[{},`
	}
	pairs := make([]string, 4)
	for n := range pairs {
		text := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%1024d", i*len(pairs)+n))
		pairs[n] = fmt.Sprintf(`{"key":%q,"value":%q}`, text, text)
	}
	_, err := io.WriteString(w, begin+strings.Join(pairs, ","))
	return err
}

// Whatever etcd answers, a node uses little memory, both at startup and later, and startup ends
// after numbers.start_timeout.
func TestHostileMemoryOfEtcd(t *testing.T) {
	t.Parallel()
	member := etcdtest.Start(t, 1).Endpoints()[0]
	direct, err := etcd.New(etcd.Config{Endpoints: []string{member}})
	if err != nil {
		t.Fatal(err)
	}
	front := &hostileEtcd{etcd: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: member})}
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	command, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	start := func(more string) *flakeNode {
		config := etcdConfig(t, []string{server.Listener.Addr().String()}, etcdHold, more)
		return &flakeNode{process: spawn(t, freePort(t), command, "-noinput", "-setcookie", cookie, "-config", config)}
	}
	check := func(t *testing.T, n *flakeNode, before int, what, of string) {
		t.Helper()
		front.begin(hostileAnswers[what], of)
		await(t, "the node reads hostile answers", func() bool { return front.answers() > 2 })
		peak := memory(t, n, "VmHWM")
		t.Logf("%s, of %q: %d kB, %+d kB at most", what, of, before, peak-before)
		if (peak-before)<<10 > mayGrow {
			t.Errorf("%s, of %q: resident memory grew from %d to %d kB", what, of, before, peak)
		}
	}
	t.Run("running", func(t *testing.T) {
		n := start("")
		n.await("  HTTP ")
		before := memory(t, n, "VmRSS")
		for what := range hostileAnswers {
			resetPeak(t, n)
			check(t, n, before, what, "")
		}
		front.begin(hostileAnswers["pairs"], pathOfList)
		claimed := regexp.MustCompile(`\(assigned number (\d+)\)`).FindStringSubmatch(n.output())
		number, _ := strconv.ParseUint(claimed[1], 10, 64)
		// So that the node lists the numbers to find another.
		if _, err := workers.Release(t.Context(), direct, "flake", number, uint64(time.Now().UnixMilli())); err != nil {
			t.Fatal(err)
		}
		for what := range hostileAnswers {
			resetPeak(t, n)
			check(t, n, before, what, pathOfList)
		}
	})
	t.Run("starting", func(t *testing.T) {
		for what := range hostileAnswers {
			for _, of := range []string{"", pathOfList} {
				front.begin(hostileAnswers[what], of)
				check(t, start(""), 0, what, of)
			}
		}
	})
	t.Run("start_timeout", func(t *testing.T) {
		for what := range hostileAnswers {
			front.begin(hostileAnswers[what], pathOfList)
			if status := start("start_timeout = 1").wait(); status != exitFailure {
				t.Errorf("%s: exit status %d", what, status)
			}
		}
	})
}

// pathOfList is the end of the path of a request for a list.
const pathOfList = "range"
