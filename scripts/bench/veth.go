package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// link is the name of both ends of a virtual link. Their addresses are of the range for
// benchmarks (RFC 2544).
const (
	link    = "flakebench"
	nearEnd = "198.18.0.1"
	farEnd  = "198.18.0.2"
)

// overVeth returns a world whose callers are in a network namespace of their own, at
// the far end of a virtual link. The caller must leave it, even after an error.
func (w *world) overVeth() (v *world, leave func(), err error) {
	holder := w.command("sleep", "infinity")
	holder.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
	if err := holder.Start(); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: a network namespace needs root", err)
		}
		return nil, func() {}, err
	}
	leave = func() { end(holder) }
	pid := fmt.Sprint(holder.Process.Pid)
	there := site{farEnd, []string{"nsenter", "-t", pid, "-n"}}
	for _, step := range []struct {
		at   site
		args string
	}{
		{w.near, "ip link add " + link + " type veth peer name " + link + " netns " + pid},
		{w.near, "ip addr add " + nearEnd + "/30 dev " + link},
		{w.near, "ip link set " + link + " up"},
		{there, "ip addr add " + farEnd + "/30 dev " + link},
		{there, "ip link set " + link + " up"},
		{there, "ip link set lo up"},
	} {
		cmd := w.commandAt(step.at, strings.Fields(step.args)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, leave, fmt.Errorf("%q: %w\n%s", cmd.Args, err, out)
		}
	}
	v, err = w.at(site{host: nearEnd}, there)
	return v, func() {
		v.endEPMD()
		w.command("ip", "link", "del", link).Run() // what is left of a node may keep the namespace
		end(holder)
	}, err
}
