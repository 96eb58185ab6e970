package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/flake-go/flake/flake/formats"
)

// claim returns an error if another generator on this machine has the same ids, or some of them. Each generator
// may have its own file of marks, so locking the file is not enough. A claim is a socket in Linux's abstract
// namespace, named after the ids. It vanishes with the process, however the process ends.
//
// Any user can make such a socket, but must not be able to keep the node from starting. So if the configuration
// chose the ids, two kinds of claims only cause a warning: those of other users, except root, and those of
// processes that do not answer.
func claim(p formats.Range, chosen bool, log *slog.Logger) (release func() error, err error) {
	name := fmt.Sprintf("%s%s/%x-%x/%s", claimPrefix, p.Space, p.First, p.Last, rand.Text())
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	go answerClaims(l)
	if err := compare(name, p, chosen, log); err != nil {
		l.Close()
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	return l.Close, nil
}

// answerClaims hangs up on callers that want to know who owns a claim: the kernel has already told them.
func answerClaims(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

// compare returns an error if a claim other than name covers some of the ids.
func compare(name string, p formats.Range, chosen bool, log *slog.Logger) error {
	others, err := claims()
	if err != nil {
		return fmt.Errorf("cannot find out whether another generator on this machine has it: %w", err)
	}
	for other, ids := range others {
		if other == name || !p.Overlaps(ids) {
			continue
		}
		owner, err := ownerOf(other)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED): // its process has just ended, or it was not a claim of flake's
		case errors.Is(err, syscall.EAGAIN) && chosen:
			log.Warn("a process that does not answer claims the same ids", "worker", p, "socket", other)
		case err == nil && chosen && owner.Uid != 0 && int(owner.Uid) != os.Getuid():
			log.Warn("a process of another user claims the same ids", "worker", p, "pid", owner.Pid, "uid", owner.Uid)
		case err != nil:
			return fmt.Errorf("cannot find the owner of socket %s, which claims the same ids: %w", other, err)
		default:
			return fmt.Errorf("another generator on this machine has it, in process %d of user %d, "+
				"and both would hand out the same ids; stop that process first, or configure a different value here",
				owner.Pid, owner.Uid)
		}
	}
	return nil
}

const claimPrefix = "@flake/"

// claims returns the ranges claimed on this machine, in this network namespace. Its keys are the
// names of the sockets.
func claims() (map[string]formats.Range, error) {
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	all := make(map[string]formats.Range)
	for line := range strings.SplitSeq(string(sockets), "\n") {
		_, name, ok := strings.Cut(line, " "+claimPrefix)
		parts := strings.Split(name, "/")
		if !ok || len(parts) != 3 {
			continue
		}
		p := formats.Range{Space: parts[0]}
		if _, err := fmt.Sscanf(parts[1], "%x-%x", &p.First, &p.Last); err == nil {
			all[claimPrefix+name] = p
		}
	}
	return all, nil
}

// ownerOf returns the owner of a listening socket.
func ownerOf(name string) (*syscall.Ucred, error) {
	c, err := net.Dial("unix", name)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f, err := c.(*net.UnixConn).File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return syscall.GetsockoptUcred(int(f.Fd()), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
}
