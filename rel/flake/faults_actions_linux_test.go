package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/storetest"
)

// rigAction is a fault, or what an operator does.
type rigAction struct {
	weight int
	name   string
	do     func(r *rig, n *rigNode, x *rand.Rand) // n is a node that hands out ids; afterwards it must do so again
	copies bool                                   // nodes may report a copy
}

// rigActions are the faults that all stores have. Each store has some more.
var rigActions = []rigAction{
	{2, "kill -9", func(_ *rig, n *rigNode, _ *rand.Rand) { n.again(syscall.SIGKILL, nil) }, false},
	{2, "kill -9, an empty disk", func(_ *rig, n *rigNode, _ *rand.Rand) { n.again(syscall.SIGKILL, n.wipe) }, false},
	{2, "a clean stop", func(_ *rig, n *rigNode, _ *rand.Rand) { n.again(syscall.SIGTERM, nil) }, false},
	{1, "a clean stop, an empty disk", func(_ *rig, n *rigNode, _ *rand.Rand) { n.again(syscall.SIGTERM, n.wipe) }, false},
	{1, "a clean stop at the first ids after kill -9", func(_ *rig, n *rigNode, _ *rand.Rand) {
		n.again(syscall.SIGKILL, nil)
		n.said("  HTTP ")
		n.again(syscall.SIGTERM, nil)
	}, false},
	{1, "a pause within hold", func(_ *rig, n *rigNode, x *rand.Rand) { n.pause(lasts(x, 0.1, 0.9)) }, false},
	{2, "a pause beyond hold", func(_ *rig, n *rigNode, x *rand.Rand) { n.pause(lasts(x, 1, 3)) }, false},
	{1, "the configuration reloaded", func(_ *rig, n *rigNode, _ *rand.Rand) { n.signal(syscall.SIGHUP) }, false},

	{1, "an older copy of the disk", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.keepDisk()
		time.Sleep(lasts(x, 0.3, 2)) // how old it becomes
		n.again(syscall.SIGKILL, n.returnDisk)
	}, true},
	{1, "a copy of the disk beside the original", func(r *rig, n *rigNode, _ *rand.Rand) { r.copied(n, func() {}) }, true},
	{1, "both of two copies of a disk", func(r *rig, n *rigNode, _ *rand.Rand) {
		n.end(syscall.SIGKILL)
		r.copied(n, n.start)
	}, true},
	{1, "a second process on the file", func(r *rig, n *rigNode, _ *rand.Rand) {
		c := r.extra(n.machine)
		c.start()
		c.refused("on another node's disk")
		c.end(syscall.SIGKILL)
	}, false},
	{2, "a second process on the file, the lock lost", (*rig).secondUnlocked, false},
	{1, "the lock removed", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.sh("rm %s/timestamp.lock", n.r.disk)
		time.Sleep(lasts(x, 0.3, 1)) // how long the fault lasts
		n.again(syscall.SIGKILL, nil)
	}, false},
	{1, "a bit of a slot flipped", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.again(syscall.SIGKILL, func() { n.flip(x) })
	}, false},
	{1, "a slot zeroed", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.again(syscall.SIGKILL, func() { n.damage(x, func(one, _ []byte) { clear(one) }) })
	}, false},
	{1, "the slots swapped", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.again(syscall.SIGKILL, func() {
			n.damage(x, func(one, other []byte) {
				kept := slices.Clone(one)
				copy(one, other)
				copy(other, kept)
			})
		})
	}, false},
	{2, "a bit flipped, the disk read-only before, the clock set back", func(r *rig, n *rigNode, x *rand.Rand) {
		n.set(lasts(x, 0.7, 0.9))
		time.Sleep(lasts(x, 0.4, 0.6)) // until a mark is ahead
		n.readOnly(func() {
			time.Sleep(lasts(x, 0.85, 1)) // until ids reach the mark
			n.end(syscall.SIGKILL)
		})
		n.flip(x)
		n.set(0)
		n.start()
	}, false},
	{1, "both slots damaged", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.again(syscall.SIGKILL, func() { n.damage(x, func(one, other []byte) { one[70] ^= 1; other[70] ^= 1 }) })
		n.refused("with both slots damaged")
		n.again(syscall.SIGKILL, n.wipe)
	}, false},
	{1, "the disk read-only", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.readOnly(func() { time.Sleep(lasts(x, 0.5, 2)) }) // how long the fault lasts
	}, false},
	{1, "the disk full", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.sh("cat /dev/zero > %s/full 2> /dev/null || :", n.r.disk)
		time.Sleep(lasts(x, 0.5, 2)) // how long the fault lasts
		if x.IntN(2) == 0 {
			n.again(syscall.SIGKILL, nil)
		}
		n.sh("rm %s/full", n.r.disk)
		n.again(syscall.SIGKILL, nil) // it may have refused to start
	}, false},

	{2, "requests to the store lost", func(_ *rig, n *rigNode, x *rand.Rand) { n.cut(x, n.link.DropRequests) }, false},
	{2, "answers from the store lost", func(_ *rig, n *rigNode, x *rand.Rand) { n.cut(x, n.link.DropAnswers) }, false},
	{3, "late writes", func(_ *rig, n *rigNode, x *rand.Rand) { n.cut(x, n.link.Delay) }, false},
	{1, "cut off from the store", func(_ *rig, n *rigNode, x *rand.Rand) { n.cut(x, n.link.Cut) }, false},
	{1, "kill -9 while cut off from the store", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.cut(x, func() { n.link.Cut(); n.again(syscall.SIGKILL, nil) })
	}, false},

	{1, "the clock ahead for a time", func(_ *rig, n *rigNode, x *rand.Rand) { n.step(x, lasts(x, 0.1, 0.9)) }, false},
	{1, "the clock back for a time", func(_ *rig, n *rigNode, x *rand.Rand) { n.step(x, -lasts(x, 0.1, 0.9)) }, false},
	{1, "the clock an hour ahead for a time", func(_ *rig, n *rigNode, x *rand.Rand) { n.step(x, time.Hour) }, false},
	{1, "kill -9 while the clock is ahead", func(_ *rig, n *rigNode, x *rand.Rand) {
		n.set(lasts(x, 0.1, 0.9))
		time.Sleep(lasts(x, 0.3, 1)) // how long the fault lasts
		n.again(syscall.SIGKILL, func() { n.set(0) })
	}, false},

	{1, "flake check", func(r *rig, n *rigNode, _ *rand.Rand) {
		out, err := n.flake("check", "-setcookie", cookie).CombinedOutput()
		if !strings.Contains(string(out), "starting now: ") {
			r.wrong("flake check: %v, %s", err, out)
		}
	}, false},
	{1, "flake workers", func(r *rig, _ *rigNode, _ *rand.Rand) { r.operate(true) }, false},
	{2, "flake workers release of a number in use", func(r *rig, n *rigNode, _ *rand.Rand) {
		r.operate(true, "release", fmt.Sprint(r.held(n)))
	}, false},
	{1, "flake workers release after kill -9", func(r *rig, n *rigNode, _ *rand.Rand) {
		number := fmt.Sprint(r.held(n))
		n.again(syscall.SIGKILL, func() { r.operate(true, "release", number) })
	}, false},
	{1, "flake workers after-restore without a restore", func(r *rig, _ *rigNode, _ *rand.Rand) {
		r.operate(true, "-margin", "1s", "after-restore")
		r.operate(true, "-margin", "1s", "after-restore")
	}, false},
	{1, "flake workers after-restore with a margin of a day, then withdraw", func(r *rig, n *rigNode, _ *rand.Rand) {
		r.operate(true, "-margin", "24h", "-sure", "after-restore")
		n.again(syscall.SIGKILL, n.wipe)
		n.said("claimed a worker id")
		r.operate(true, "-margin", "1s", "withdraw")
	}, false},
	{1, "flake workers after-restore with a negative margin", func(r *rig, _ *rigNode, _ *rand.Rand) {
		r.operate(false, "-margin=-1h", "-sure", "after-restore")
	}, false},
	{1, "flake workers after-restore under a prefix without numbers", func(r *rig, _ *rigNode, _ *rand.Rand) {
		r.operate(false, "FLAKE_NUMBERS_PREFIX=none", "after-restore")
	}, false},
	{1, "flake workers withdraw", func(r *rig, _ *rigNode, _ *rand.Rand) {
		r.operate(r.floor().Mark > 0, "-margin", "1s", "withdraw")
	}, false},
	{2, "the store restored", func(r *rig, n *rigNode, x *rand.Rand) {
		r.restored(n, x, func(time.Time) { r.operate(true, "-margin", rigMargin().String(), "after-restore") })
	}, true},
	{1, "the store restored twice", func(r *rig, n *rigNode, x *rand.Rand) {
		r.restored(n, x, func(time.Time) {
			r.operate(true, "-margin", rigMargin().String(), "after-restore")
			r.link(storetest.Link.Join)
			time.Sleep(lasts(x, 0, 1)) // how long it is in use
			r.link(storetest.Link.Cut)
			r.store.restore(r.backup(2))
			r.operate(true, "-again", "-margin", (2 * rigMargin()).String(), "after-restore")
		})
	}, true},
	{2, "the store restored after a time, with -until", func(r *rig, n *rigNode, x *rand.Rand) {
		r.restored(n, x, func(last time.Time) {
			time.Sleep(lasts(x, 0.5, 2)) // how long the store is down
			r.operate(true, "-margin", rigMargin().String(), "-until", last.UTC().Format(time.RFC3339Nano), "after-restore")
		})
	}, true},
	{2, "the store restored, with -until an hour early", func(r *rig, n *rigNode, x *rand.Rand) {
		r.restored(n, x, func(last time.Time) {
			if !r.operate(false, "-margin", rigMargin().String(), "-until",
				last.Add(-time.Hour).UTC().Format(time.RFC3339), "after-restore") { // otherwise, ids repeat
				r.operate(true, "-margin", rigMargin().String(), "after-restore")
			}
		})
	}, true},
	{2, "a number's key deleted", func(r *rig, n *rigNode, x *rand.Rand) {
		other := r.other(n, x)
		other.again(syscall.SIGKILL, other.wipe) // it claims the last number that is free
		other.said("claimed a worker id")
		number := r.held(n)
		other.again(syscall.SIGKILL, func() { other.wipe(); r.remove(fmt.Sprintf("/n/%012x", number)) })
		time.Sleep(lasts(x, 0.3, 1)) // how long nobody notices
	}, false},
	{1, "the floor deleted", func(r *rig, _ *rigNode, _ *rand.Rand) {
		r.operate(true, "-margin", "1s", "after-restore")
		r.remove("/floor")
	}, false},
	{1, "the floor unreadable for a time", func(r *rig, _ *rigNode, x *rand.Rand) {
		r.put("/floor", "x")
		time.Sleep(lasts(x, 0.3, 1.5)) // how long the fault lasts
		r.remove("/floor")
	}, false},
	{2, "a number by hand that another node has", func(r *rig, n *rigNode, _ *rand.Rand) {
		least := n
		for _, other := range r.nodes[:rigNodes] {
			if r.held(other) < r.held(least) {
				least = other
			}
			if n.many == 1 || other.many > 1 && r.held(other) > r.held(n) {
				n = other
			}
		}
		number := r.held(n)
		least.end(syscall.SIGTERM) // so that another number is free
		defer least.start()
		r.stranger(n, "with an id by hand", func(text string) string {
			text = strings.Replace(text, "\nid = \"assigned\"", fmt.Sprintf("\nid = %d", number), 1)
			return strings.Replace(text, fmt.Sprint("count = ", rigNumbers), fmt.Sprint("count = ", number), 1)
		})
	}, false},
	{2, "a worker id by hand that the store assigns", func(r *rig, n *rigNode, _ *rand.Rand) {
		number := r.held(n)
		r.stranger(n, "with a worker id by hand", func(text string) string {
			text, _, _ = strings.Cut(text, "[[generator]]")
			return strings.Replace(text, `"assigned"`, fmt.Sprintf(`"01:00:00:00:00:%02x"`, number), 1) +
				fmt.Sprintf("[http]\nlisten = \"127.0.0.1:%s\"\n", httpPort)
		})
	}, false},
	{2, "another store after a clean stop", func(r *rig, n *rigNode, x *rand.Rand) {
		if r.another == nil {
			r.another = r.store.another()
		}
		_, linked := r.another.link(n.machine)
		r.elsewhere(n, x, r.another, linked, fmt.Sprint("other", x.Uint32()))
	}, false},
	{2, "another prefix after a clean stop", func(r *rig, n *rigNode, x *rand.Rand) {
		r.elsewhere(n, x, r.store, n.tables, fmt.Sprint("lost", x.Uint32()))
	}, false},
	{1, "flake workers move of the fleet to another prefix", func(r *rig, _ *rigNode, x *rand.Rand) {
		for _, n := range r.nodes[:rigNodes] {
			n.end(syscall.SIGTERM)
		}
		from := workers.Place(r.cluster(), r.prefix)
		r.prefix = fmt.Sprint("fleet", x.Uint32())
		r.operate(true, "-margin", "1s", "move", from)
		for _, n := range r.nodes[:rigNodes] {
			n.start()
		}
	}, false},
}

// actions returns all faults of the rig's store.
func (r *rig) actions() []rigAction { return slices.Concat(rigActions, r.store.actions()) }

// lasts returns a time, in which lo and hi are multiples of hold.
func lasts(x *rand.Rand, lo, hi float64) time.Duration {
	return time.Duration((lo + x.Float64()*(hi-lo)) * float64(rigHold))
}

// again ends the node, calls do unless it is nil, and starts the node.
func (n *rigNode) again(s syscall.Signal, do func()) {
	if status := n.end(s); s == syscall.SIGTERM && status != 0 {
		n.r.wrong("n%d: exit status %d:\n%s", n.i, status, tail(n.output()))
	}
	if do != nil {
		do()
	}
	n.start()
}

// said waits until the log contains text, or the node has ended.
func (n *rigNode) said(text string) bool {
	return soon(func() bool { return n.hasEnded() || strings.Contains(n.output(), text) }) && !n.hasEnded()
}

// wipe empties the node's disk.
func (n *rigNode) wipe() {
	n.sh("rm -rf %s/*", n.r.disk)
	n.life.Add(1)
}

// disk returns the path of the file of marks.
func (n *rigNode) disk() string { return n.path(n.r.disk + "/timestamp") }

func (n *rigNode) keepDisk() { n.kept = readFile(n.r.t, n.disk()) }

func (n *rigNode) returnDisk() {
	writeFile(n.r.t, n.disk(), n.kept)
	n.life.Add(1)
}

// damage changes the slots in the file of marks, if it has any, but not the file's time. one is either
// of them.
func (n *rigNode) damage(x *rand.Rand, change func(one, other []byte)) {
	data, err := os.ReadFile(n.disk())
	if err != nil || len(data) < 8192 {
		return
	}
	slots := [2][]byte{data[:len(data)/2], data[len(data)/2:]}
	one := x.IntN(2)
	change(slots[one], slots[1-one])
	info, err := os.Stat(n.disk())
	if err != nil {
		n.r.t.Fatal(err)
	}
	writeFile(n.r.t, n.disk(), string(data))
	at := info.ModTime().Add(n.ahead) // as if the kernel had the machine's clock
	if err := os.Chtimes(n.disk(), at, at); err != nil {
		n.r.t.Error(err)
	}
}

// flip flips a bit of a slot.
func (n *rigNode) flip(x *rand.Rand) {
	n.damage(x, func(one, _ []byte) { one[x.IntN(len(one))] ^= 1 << x.IntN(8) })
}

func (n *rigNode) pause(d time.Duration) {
	n.signal(syscall.SIGSTOP)
	time.Sleep(d) // how long the fault lasts
	n.signal(syscall.SIGCONT)
}

// readOnly calls do while the disk is read-only.
func (n *rigNode) readOnly(do func()) {
	n.sh("mount --bind %[1]s %[1]s && mount -o remount,bind,ro %[1]s", n.r.disk)
	do()
	n.sh("umount -l %s", n.r.disk)
}

func (n *rigNode) cut(x *rand.Rand, drop func()) {
	d := lasts(x, 0.3, 2.5)
	drop()
	time.Sleep(d) // how long the fault lasts
	n.link.Join()
}

// set sets the machine's clock ahead.
func (n *rigNode) set(ahead time.Duration) {
	n.ahead = ahead
	path := n.path(n.r.clock)
	writeFile(n.r.t, path+".new", fmt.Sprint(ahead.Nanoseconds()))
	if err := os.Rename(path+".new", path); err != nil {
		n.r.t.Error(err)
	}
}

// step sets the clock ahead for a time.
func (n *rigNode) step(x *rand.Rand, ahead time.Duration) {
	n.set(ahead)
	time.Sleep(lasts(x, 0.3, 1.2)) // how long the fault lasts
	n.set(0)
}

// other returns another node that hands out ids.
func (r *rig) other(n *rigNode, x *rand.Rand) *rigNode {
	return r.nodes[(n.i+1+x.IntN(rigNodes-1))%rigNodes]
}

// extra returns the node that is not part of the fleet, on a new machine.
func (r *rig) extra(of *machine) *rigNode {
	n := r.nodes[rigNodes]
	n.move(of)
	return n
}

// copied starts a copy of a node's disk on another machine, and calls do. It waits until both have a number.
func (r *rig) copied(n *rigNode, do func()) {
	from, c := time.Now(), r.extra(nil)
	writeFile(r.t, c.disk(), readFile(r.t, n.disk()))
	c.start()
	do()
	if !soon(func() bool { return r.number(n) != nil && r.number(c) != nil }) {
		r.wrong("n%d and its copy do not both have numbers:\n%s\n%s", n.i, tail(n.output()), tail(c.output()))
	}
	r.allow(n, c, from)
	time.Sleep(rigHold) // so that further ids would be found
	c.end(syscall.SIGKILL)
}

// byHand replaces the number from the store in a configuration by one that the store does not assign.
func byHand(config string) string {
	config, _, _ = strings.Cut(config, "[numbers]")
	config = strings.ReplaceAll(config, `worker_id = "assigned"`, `worker_id = "02:00:00:00:00:01"`)
	return strings.ReplaceAll(config, `"assigned"`, fmt.Sprint(rigNumbers))
}

// secondUnlocked starts a second process on a node's file that does not see the node's lock. Their numbers are set by
// hand, because two nodes with one number from a store also notice each other there.
func (r *rig) secondUnlocked(n *rigNode, x *rand.Rand) {
	n.settings = byHand
	n.again(syscall.SIGTERM, nil)
	n.said("  HTTP ")
	c := r.extra(n.machine)
	c.settings = byHand
	c.sh("touch %[1]s/none && mount --bind %[1]s/none %[2]s/timestamp.lock", filepath.Dir(r.clock), r.disk)
	c.start()
	time.Sleep(lasts(x, 1, 3)) // how long the fault lasts
	c.end(syscall.SIGKILL)
	n.settings, c.settings = nil, nil
	n.again(syscall.SIGKILL, nil)
}

// stranger starts a node with other settings, which must be refused because of n.
func (r *rig) stranger(n *rigNode, what string, settings func(text string) string) {
	c := r.extra(nil)
	c.settings = settings
	c.start()
	c.refused(fmt.Sprintf("%s that n%d has", what, n.i))
	c.end(syscall.SIGKILL)
	c.settings = nil
}

// refused waits until the node ends, or for twice hold, in which it must hand out no ids.
func (n *rigNode) refused(what string) {
	for end := time.Now().Add(2 * rigHold); !n.hasEnded() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(n.output(), "  HTTP ") {
			n.r.wrong("n%d starts %s", n.i, what)
			time.Sleep(rigHold) // until its ids repeat
			return
		}
	}
	n.r.t.Logf("n%d %s:\n%s", n.i, what, tail(n.output()))
}

// elsewhere starts a node with another store or prefix, where only a number is free that another node has.
func (r *rig) elsewhere(n *rigNode, x *rand.Rand, store rigStore, tables, prefix string) {
	number := r.held(r.other(n, x))
	s := r.open(store)
	for i := range uint64(rigNumbers) {
		if i == number {
			continue
		}
		key := fmt.Sprintf("%s/n/%012x", prefix, i)
		v := workers.Value{Mark: uint64(time.Now().Add(time.Hour).UnixMilli()), Generation: 1, Token: 1, Name: "filler"}
		if _, err := s.Swap(r.t.Context(), nil, map[string]string{key: v.String()}); err != nil {
			r.t.Error(err)
		}
	}
	n.settings = func(text string) string {
		text, _, _ = strings.Cut(text, "[numbers]")
		return text + r.numbersTable(tables, prefix)
	}
	n.again(syscall.SIGTERM, nil)
	n.refused("with another store or prefix")
	n.settings = nil
	n.again(syscall.SIGKILL, nil)
}

// open returns a client of a store.
func (r *rig) open(store rigStore) workers.Store {
	s, err := store.open()
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// numbers returns what the store has of all numbers, or nil if it does not answer.
func (r *rig) numbers() []workers.Entry {
	all, _ := workers.List(r.t.Context(), r.open(r.store), r.prefix)
	return all
}

// floor returns the floor, or the zero Floor if the store does not answer.
func (r *rig) floor() workers.Floor {
	f, _ := workers.ReadFloor(r.t.Context(), r.open(r.store), r.prefix)
	return f
}

// cluster returns the id of the store's cluster.
func (r *rig) cluster() string {
	id, err := r.open(r.store).(workers.Clustered).Cluster(r.t.Context())
	if err != nil {
		r.wrong("the store does not answer: %v", err)
	}
	return id
}

// number returns what the store has of the number that a node holds, or nil.
func (r *rig) number(n *rigNode) *workers.Entry {
	for _, e := range r.numbers() {
		if e.Name == n.name && !e.Free && e.Mark > uint64(time.Now().UnixMilli()) {
			return &e
		}
	}
	return nil
}

// held waits until a node holds a number, and returns it.
func (r *rig) held(n *rigNode) (number uint64) {
	r.t.Helper()
	if !soon(func() bool {
		e := r.number(n)
		if e != nil {
			number = e.Number
		}
		return e != nil
	}) {
		r.wrong("n%d claims no number:\n%s", n.i, tail(n.output()))
	}
	return number
}

// put writes a key under the prefix.
func (r *rig) put(key, value string) {
	if _, err := r.open(r.store).Swap(r.t.Context(), nil, map[string]string{r.prefix + key: value}); err != nil {
		r.t.Error(err)
	}
}

// remove deletes a key under the prefix.
func (r *rig) remove(key string) {
	if err := r.store.remove(r.prefix + key); err != nil {
		r.t.Error(err)
	}
}

// operate runs flake workers as an operator, until the store answers in time, and reports whether it succeeds. It must
// succeed if can is set, and otherwise fail. The first argument may be a variable of the environment.
func (r *rig) operate(can bool, args ...string) (ok bool) {
	r.t.Helper()
	var env []string
	if len(args) > 0 && strings.Contains(args[0], "FLAKE_") {
		env, args = []string{args[0]}, args[1:]
	}
	config := filepath.Join(r.folder, "operator.toml")
	writeFile(r.t, config, r.numbersTable(r.tables, r.prefix))
	var out []byte
	soon(func() bool {
		var err error
		out, err = r.flake(r.operator, env, append([]string{"workers", "-config", config}, args...)...).CombinedOutput()
		ok = err == nil
		return ok || !strings.Contains(string(out), " in time")
	})
	if ok != can {
		r.wrong("flake workers %q %q succeeds: %v\n%s", env, args, ok, out)
	}
	return ok
}

// link changes the links of all nodes.
func (r *rig) link(change func(storetest.Link)) {
	for _, n := range r.nodes {
		change(n.link)
	}
}

// passed waits until the floor has passed: a restore before is a second one.
func (r *rig) passed() {
	time.Sleep(min(time.Until(time.UnixMilli(int64(r.floor().Mark))), time.Minute))
}

// forgotten makes n claim the number of another node after save, and calls restore, which must start that node.
func (r *rig) forgotten(n *rigNode, x *rand.Rand, save func(), restore func(other *rigNode)) {
	other := r.other(n, x)
	number := r.held(other)
	other.end(syscall.SIGTERM)
	save()
	for range rigNumbers - rigNodes + 2 { // until it has claimed the other's number, which what is saved lacks
		n.again(syscall.SIGKILL, n.wipe)
		if r.held(n) == number {
			break
		}
	}
	time.Sleep(lasts(x, 0, 2)) // how old what is saved becomes
	restore(other)
}

// unseen calls change, after which nodes must write the floor without a command.
func (r *rig) unseen(change func()) {
	before := r.floor()
	change()
	if !soon(func() bool { f := r.floor(); return f.Mark > 0 && f.Nonce != before.Nonce }) {
		r.wrong("nobody notices: the floor is still %v", before)
	}
}

// restored returns the store to an earlier state, as the page says, and calls record while no node reaches it.
func (r *rig) restored(n *rigNode, x *rand.Rand, record func(last time.Time)) {
	r.passed()
	r.forgotten(n, x, func() {
		os.RemoveAll(r.backup(1))
		os.RemoveAll(r.backup(2))
		r.store.save(r.backup(1))
		if out, err := exec.Command("cp", "-a", r.backup(1), r.backup(2)).CombinedOutput(); err != nil {
			r.t.Fatalf("%v: %s", err, out)
		}
	}, func(other *rigNode) {
		r.link(storetest.Link.Cut)
		last := time.Now()
		other.start()
		r.store.restore(r.backup(1))
		record(last)
		other.link.Join()
		time.Sleep(lasts(x, 0.2, 0.5)) // the nodes do not reach the store at the same time
		r.link(storetest.Link.Join)
	})
}

// backup returns the path of one of two equal backups of the store.
func (r *rig) backup(i int) string { return filepath.Join(r.folder, fmt.Sprint("backup", i)) }

// Every subcommand of flake workers is one of the actions.
func TestFaultsHaveCommands(t *testing.T) {
	i, err := find("workers")
	if err != nil {
		t.Fatal(err)
	}
	for args := range strings.SplitSeq(strings.Trim(table()[i].args, "[]"), "|") {
		name := "flake workers " + strings.Fields(args)[0]
		if !slices.ContainsFunc(rigActions, func(a rigAction) bool { return strings.HasPrefix(a.name, name) }) {
			t.Errorf("no action is called %q", name)
		}
	}
}
