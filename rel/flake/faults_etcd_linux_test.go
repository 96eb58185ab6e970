package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/etcd"
	"github.com/flake-go/flake/flake/workers/etcd/etcdtest"
	"github.com/flake-go/flake/flake/workers/storetest"
)

// rigEtcd is a real etcd of three members, or one.
type rigEtcd struct {
	t *testing.T
	*etcdtest.Cluster
}

func newRigEtcd(t *testing.T) rigStore { return rigEtcd{t, etcdtest.Start(t, 3)} }

func etcdTables(endpoints []string) string {
	return fmt.Sprintf("store = \"etcd\"\n[etcd]\nendpoints = [\"%s\"]\n", strings.Join(endpoints, `", "`))
}

func (e rigEtcd) link(m *machine) (storetest.Link, string) {
	l := e.LinkFrom(func() net.Listener { return m.listen("127.0.0.1:0") })
	return l, etcdTables(l.Addrs)
}

func (e rigEtcd) open() (workers.Store, error) {
	return etcd.New(etcd.Config{Endpoints: e.Endpoints()})
}

// remove deletes a key with etcd's API.
func (e rigEtcd) remove(key string) error {
	message := fmt.Sprintf(`{"key":%q}`, base64.StdEncoding.EncodeToString([]byte(key)))
	return e.Leader().Call("kv/deleterange", message, new(struct{}))
}

func (e rigEtcd) save(folder string)    { e.Copy(folder) }
func (e rigEtcd) restore(folder string) { e.Restore(folder) }
func (e rigEtcd) another() rigStore     { return rigEtcd{e.t, etcdtest.Start(e.t, 1)} }

func (e rigEtcd) actions() []rigAction {
	return []rigAction{
		{1, "a member killed", func(_ *rig, _ *rigNode, x *rand.Rand) {
			e.fail(x, e.Members[x.IntN(3)], (*etcdtest.Member).Kill, (*etcdtest.Member).Start)
		}, false},
		{1, "a member paused", func(_ *rig, _ *rigNode, x *rand.Rand) {
			e.fail(x, e.Members[x.IntN(3)], (*etcdtest.Member).Pause, (*etcdtest.Member).Resume)
		}, false},
		{1, "the leader killed", func(_ *rig, _ *rigNode, x *rand.Rand) {
			e.fail(x, e.Leader(), (*etcdtest.Member).Kill, (*etcdtest.Member).Start)
		}, false},
		{1, "the leader cut off", func(_ *rig, _ *rigNode, x *rand.Rand) {
			e.fail(x, e.Leader(), (*etcdtest.Member).Cut, (*etcdtest.Member).Join)
		}, false},
		{1, "the leader not heard", func(_ *rig, _ *rigNode, x *rand.Rand) {
			e.fail(x, e.Leader(), (*etcdtest.Member).Mute, (*etcdtest.Member).Join)
		}, false},
		{1, "all of etcd paused", func(_ *rig, _ *rigNode, x *rand.Rand) {
			e.fail(x, nil, func(*etcdtest.Member) { e.each((*etcdtest.Member).Pause) },
				func(*etcdtest.Member) { e.each((*etcdtest.Member).Resume) })
		}, false},
	}
}

// fail makes a member fail for a time.
func (e rigEtcd) fail(x *rand.Rand, m *etcdtest.Member, begin, end func(m *etcdtest.Member)) {
	begin(m)
	time.Sleep(lasts(x, 0.3, 2)) // how long the fault lasts
	end(m)
	e.Leader()
}

// each calls do for all members of etcd.
func (e rigEtcd) each(do func(m *etcdtest.Member)) {
	for _, m := range e.Members {
		do(m)
	}
}
