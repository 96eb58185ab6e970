package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/workers"
)

var checkStates = flag.Int("check.states", 16, "the number of states in which TestCheckAndStart starts a node")

// startStates are what may happen to a node that has ended, to its disk, and to what the store has of it.
var startStates = []struct {
	name string
	do   func(r *rig, n *rigNode, x *rand.Rand)
}{
	{"an empty disk", func(_ *rig, n *rigNode, _ *rand.Rand) { n.wipe() }},
	{"an older disk", func(_ *rig, n *rigNode, _ *rand.Rand) {
		if n.kept != "" {
			n.returnDisk()
		}
	}},
	{"a bit flipped", func(_ *rig, n *rigNode, x *rand.Rand) { n.flip(x) }},
	{"a slot zeroed", func(_ *rig, n *rigNode, x *rand.Rand) { n.damage(x, func(one, _ []byte) { clear(one) }) }},
	{"both slots damaged", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.damage(x, func(one, other []byte) { one[70] ^= 1; other[70] ^= 1 })
	}},
	{"the file cut short", func(r *rig, n *rigNode, x *rand.Rand) {
		n.sh("[ ! -e %[1]s/timestamp ] || truncate -s %[2]d %[1]s/timestamp", r.disk, x.IntN(5000))
	}},
	{"the lock removed", func(r *rig, n *rigNode, _ *rand.Rand) { n.sh("rm -f %s/timestamp.lock", r.disk) }},
	{"the key deleted", func(r *rig, _ *rigNode, _ *rand.Rand) {
		for _, e := range r.numbers() {
			r.remove(fmt.Sprintf("/n/%012x", e.Number))
		}
	}},
	{"the number taken", func(r *rig, _ *rigNode, x *rand.Rand) {
		mark := uint64(time.Now().UnixMilli() + x.Int64N(4000))
		for _, e := range r.numbers() {
			r.take(e.Number, mark)
		}
	}},
	{"all numbers taken", func(r *rig, _ *rigNode, x *rand.Rand) {
		mark := uint64(time.Now().UnixMilli() + 1000 + x.Int64N(3000))
		for i := range uint64(rigNumbers) {
			r.take(i, mark)
		}
	}},
	{"an unreadable key", func(r *rig, _ *rigNode, x *rand.Rand) {
		r.put(fmt.Sprintf("/n/%012x", x.IntN(rigNumbers)), "x")
	}},
	{"an unreadable floor", func(r *rig, _ *rigNode, _ *rand.Rand) { r.put("/floor", "x") }},
	{"a floor", func(r *rig, _ *rigNode, x *rand.Rand) {
		now := uint64(time.Now().UnixMilli())
		r.put("/floor", workers.Floor{Since: now, Mark: now + 1000 + x.Uint64N(3000), Nonce: 1}.String())
	}},
	{"the number released", func(r *rig, n *rigNode, _ *rand.Rand) {
		if e := r.number(n); e != nil {
			r.operate(true, "release", fmt.Sprint(e.Number))
		}
	}},
	{"another prefix", func(_ *rig, n *rigNode, _ *rand.Rand) { n.change("prefix = \"", "prefix = \"other") }},
	{"one number", func(_ *rig, n *rigNode, _ *rand.Rand) {
		n.change(fmt.Sprint("count = ", rigNumbers), "count = 1")
	}},
	{"no wait", func(_ *rig, n *rigNode, _ *rand.Rand) { n.change("wait = true", "") }},
	{"the store out of reach", func(_ *rig, n *rigNode, _ *rand.Rand) { n.link.Cut() }},
	{"the clock two seconds ahead", func(_ *rig, n *rigNode, _ *rand.Rand) { n.set(2 * time.Second) }},
	{"the clock seven seconds back", func(_ *rig, n *rigNode, _ *rand.Rand) { n.set(-7 * time.Second) }},
	{"the clock an hour ahead", func(_ *rig, n *rigNode, _ *rand.Rand) { n.set(time.Hour) }},
	{"the clock 40 days ahead", func(_ *rig, n *rigNode, _ *rand.Rand) { n.set(40 * 24 * time.Hour) }},
	{"nothing", func(*rig, *rigNode, *rand.Rand) {}},
}

// TestCheckAndStart makes states by seed. In each, flake check must say what a start then does: whether the node
// hands out ids, waits or ends, with which number, and how late ids are at least. This command tries more of them:
//
//	go test -v -run TestCheckAndStart ./rel/flake -check.states=200
func TestCheckAndStart(t *testing.T) {
	t.Parallel()
	seed := *faultsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-faults.seed=%d", seed)
	all := newRig(t)
	all.hold = 20 * time.Second // so that marks do not pass between check and start
	const groups = 4
	for i := range groups {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r := *all
			r.t, r.folder = t, t.TempDir()
			n := r.add(len(rigGenerators))
			for s := i; s < *checkStates; s += groups {
				r.checkAndStart(n, s, rand.New(rand.NewPCG(seed, uint64(s))))
			}
		})
	}
}

func (r *rig) checkAndStart(n *rigNode, number int, x *rand.Rand) {
	r.prefix = fmt.Sprint("state", number)
	n.settings, n.kept = nil, ""
	n.wipe()
	n.set(0)
	n.link.Join()
	var did []string
	for range x.IntN(3) {
		n.start()
		if !n.said("  HTTP ") {
			r.t.Fatalf("the node has ended:\n%s", n.output())
		}
		if x.IntN(2) == 0 {
			n.keepDisk()
		}
		n.firstID()
		how := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[x.IntN(2)]
		n.end(how)
		did = append(did, how.String())
	}
	for range 1 + x.IntN(2) {
		state := startStates[x.IntN(len(startStates))]
		state.do(r, n, x)
		did = append(did, state.name)
	}
	report, text := r.check(n)
	n.start()
	began := time.Now()
	wrong := func(format string, args ...any) {
		r.t.Helper()
		r.t.Errorf("state %d, %q: %s\n%s\n%s", number, did, fmt.Sprintf(format, args...), text, n.output())
	}
	served := func() bool { return strings.Contains(n.output(), "  HTTP ") }
	waits := func() bool { return strings.Contains(n.output(), "waiting for a worker id") }
	wait := time.Duration(report.Wait) * time.Millisecond
	const watch = 5 * time.Second // a longer wait is not awaited
	long := report.Start == generators.StartWaits && (wait == 0 || wait > watch)
	soon(func() bool {
		return served() || n.hasEnded() || long && (waits() || time.Since(began) > watch)
	})
	switch {
	case n.hasEnded() != (report.Start == generators.StartRefuses):
		wrong("it has ended: %v", n.hasEnded())
	case served() && (report.Start == generators.StartRefuses || long):
		wrong("it hands out ids")
	case waits() && report.Start == generators.StartsAtOnce:
		wrong("it waits")
	case served():
		claimed := claimPattern.FindStringSubmatch(n.output())
		c := report.Number.Claim
		switch at := n.firstID(); {
		case claimed == nil || c == nil:
			wrong("it hands out ids without a number")
		case claimed[2] != fmt.Sprint(c.Resumed) || claimed[1] != fmt.Sprint(c.Number) && !c.Random:
			wrong("it claims the number %s, resumed %s", claimed[1], claimed[2])
		case at <= c.After || at < report.Clock+uint64(report.Wait):
			wrong("its ids begin at %d", at)
		}
	}
	took := time.Since(began)
	r.t.Logf("state %d, %q: %s after %v, %v", number, did, report.Start, wait, took.Round(time.Millisecond))
	n.end(syscall.SIGKILL)
}

var claimPattern = regexp.MustCompile(`msg="claimed a worker id" number=(\d+) resumed=(\w+)`)

// check runs flake check until the store answers in time.
func (r *rig) check(n *rigNode) (report generators.Report, text string) {
	r.t.Helper()
	soon(func() bool {
		out, _ := n.flake("check", "-json", "-setcookie", cookie, "-name", n.name).Output()
		report, text = generators.Report{}, string(out)
		if err := json.Unmarshal(out, &report); err != nil {
			r.t.Fatalf("%v: %s", err, out)
		}
		return !strings.Contains(text, " in time")
	})
	return report, text
}

// change changes the node's configuration.
func (n *rigNode) change(from, to string) {
	before := n.settings
	n.settings = func(text string) string {
		if before != nil {
			text = before(text)
		}
		return strings.Replace(text, from, to, 1)
	}
}

// firstID returns the time of an id of the node, in ms.
func (n *rigNode) firstID() (milli uint64) {
	n.r.t.Helper()
	web := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return n.dial("127.0.0.1:" + httpPort) }}}
	soon(func() bool {
		answer, err := web.Get("http://127.0.0.1:" + httpPort + "/v1/ids?base=16")
		if err != nil {
			return n.hasEnded()
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		if id := strings.TrimSpace(string(body)); answer.StatusCode == http.StatusOK && len(id) > 16 {
			milli, _ = strconv.ParseUint(id[:len(id)-16], 16, 64)
		}
		return milli > 0
	})
	return milli
}

// take makes another node the owner of a number.
func (r *rig) take(number, mark uint64) {
	r.put(fmt.Sprintf("/n/%012x", number),
		workers.Value{Mark: mark, Generation: 9, Token: 9, Name: "other", Hold: uint64(r.hold / time.Millisecond)}.String())
}
