package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
)

// claim makes sure that no other generator on this machine has a place, or a part
// of it: the file at timestamp_path would not tell, for each may have its own. A
// claim is a socket in Linux's abstract namespace, which is gone with the process,
// however that ends, and whose name says the place.
//
// Anybody can make such a socket, so one of another user, but for root's, is no
// more than warned of.
func claim(p place, log *slog.Logger) (release func() error, err error) {
	name := fmt.Sprintf("%s%s/%x-%x/%s", claimPrefix, p.kind, p.first, p.last, rand.Text())
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.who, err)
	}
	others, err := claims()
	if err != nil {
		log.Warn("cannot tell whether another generator on this machine has the same ids", "err", err)
	}
	for other, place := range others {
		if other == name || !p.overlaps(place) {
			continue
		}
		owner, err := ownerOf(other)
		if err == nil && (owner.Uid == 0 || int(owner.Uid) == os.Getuid()) {
			l.Close()
			return nil, fmt.Errorf("%s: another generator on this machine has it, in process %d, and both would hand out the same ids; "+
				"stop that one first, or give this one another", p.who, owner.Pid)
		}
		log.Warn("a process of another user says that it hands out the same ids", "who", p.who, "pid", owner.Pid, "uid", owner.Uid)
	}
	return l.Close, nil
}

const claimPrefix = "@flake/"

// claims gives the places that are claimed on this machine, in this network
// namespace, by the name of the socket.
func claims() (map[string]place, error) {
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	all := make(map[string]place)
	for lines := bufio.NewScanner(bytes.NewReader(sockets)); lines.Scan(); {
		_, name, ok := strings.Cut(lines.Text(), " "+claimPrefix)
		parts := strings.Split(name, "/")
		if !ok || len(parts) != 3 {
			continue
		}
		p := place{kind: parts[0]}
		if _, err := fmt.Sscanf(parts[1], "%x-%x", &p.first, &p.last); err == nil {
			all[claimPrefix+name] = p
		}
	}
	return all, nil
}

// ownerOf tells whose a listening socket is.
func ownerOf(name string) (owner syscall.Ucred, err error) {
	c, err := net.Dial("unix", name)
	if err != nil {
		return owner, err
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return owner, err
	}
	var got *syscall.Ucred
	var optErr error
	err = raw.Control(func(fd uintptr) {
		got, optErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, optErr); err == nil {
		owner = *got
	}
	return owner, err
}
