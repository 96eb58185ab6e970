// Package reserve keeps file descriptors free for the files that ids depend on, so that these
// files can be opened no matter how many peers connect.
//
// A new descriptor has the lowest free number. So when a connection has one of the last [Kept]
// numbers below the limit, few descriptors are left, and the connection is closed. Those numbers
// are reserved for files that are open only briefly or that must not fail to open.
//
// The package also keeps threads free and reports the memory limit.
package reserve

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// Kept is the number of descriptors reserved from peers: more than all generators need to
	// save their times simultaneously, while connections are accepted and dialed.
	Kept = 128

	// Needed is the lowest limit on descriptors with which a node can serve peers.
	Needed = 256
)

// ErrFew means that only reserved descriptors are left.
var ErrFew = errors.New("too few file descriptors left")

// Enough fails if the limit on descriptors is below Needed+more, or if the limit on threads is
// below the number of reserved threads.
func Enough(more int) error {
	if allowed, need := limit(), uint64(Needed+more); allowed < need {
		return fmt.Errorf("the limit of %d open files is below the %d that the node needs; "+
			"raise it with ulimit -n 20000 or LimitNOFILE=20000 in a systemd unit", allowed, need)
	}
	if allowed, need := allThreads(), threadsKept(); allowed < need {
		return fmt.Errorf("the limit of %d threads is below the %d that the node needs (%d and one per processor); "+
			"raise it with ulimit -u, TasksMax of a systemd unit or --pids-limit of a container, or lower GOMAXPROCS",
			allowed, need, ThreadsKept)
	}
	return nil
}

// Check returns ErrFew if c, a connection or a file, has a reserved descriptor.
func Check(c any) error {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var few error
	err = raw.Control(func(fd uintptr) { few = CheckNumber(int(fd)) })
	return errors.Join(err, few)
}

// CheckNumber returns ErrFew if fd is a reserved descriptor.
func CheckNumber(fd int) error {
	if uint64(fd)+Kept >= limit() {
		return ErrFew
	}
	return nil
}

// Left returns ErrFew if the next descriptor is reserved.
func Left() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	return Check(w)
}

// Quarter returns a quarter of the descriptors for peers, but at most ceiling. It is the limit on
// peers of one kind, each with one descriptor.
func Quarter(ceiling int) int {
	const parts = 4
	if all := limit(); all < uint64(Kept+parts*ceiling) {
		return max(int(all)-Kept, parts) / parts
	}
	return ceiling
}

// Rest returns the number of descriptors for peers, less Quarter(others).
func Rest(others int) int {
	return int(min(max(limit(), Kept)-Kept, math.MaxInt32)) - Quarter(others)
}

// retry is how long a listener waits after a failure, such as a lack of descriptors.
const retry = 100 * time.Millisecond

// MaxUnsent is the size of a connection's send buffer. The kernel doubles it. By default, the
// buffer can grow to megabytes for a peer that does not read.
const MaxUnsent = 128 << 10

// Bound sets the send buffer of a TCP connection to MaxUnsent.
func Bound(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(MaxUnsent) // fails only if the connection has ended
	}
}

// Listener returns a listener that calls Bound for the connections of l, and immediately closes
// each connection with a reserved descriptor. Its Accept fails only when l is closed.
func Listener(l net.Listener, log *slog.Logger) net.Listener { return listener{l, log} }

type listener struct {
	net.Listener
	log *slog.Logger
}

func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			l.log.Error("accept failed", "listener", l.Addr(), "err", err)
			time.Sleep(retry)
			continue
		}
		if err = Check(c); err == nil {
			Bound(c)
			return c, nil
		}
		l.log.Warn("closed a new connection", "address", c.RemoteAddr(), "listener", l.Addr(), "err", err)
		c.Close()
	}
}

// ThreadsKept is the number of threads, in addition to one per processor, that connections may not
// use. They are reserved because a Go process that cannot start a thread crashes.
const ThreadsKept = 24

// allThreads returns the limit on this process's threads at the time of its first call.
var allThreads = sync.OnceValue(maxThreads)

func threadsKept() int64 { return ThreadsKept + int64(runtime.GOMAXPROCS(0)) }

// Threads returns the number of threads for connections.
func Threads() int64 { return max(allThreads()-threadsKept(), 0) }

// Memory returns how many bytes of memory this process can use: nine tenths of the limit of its
// control groups, or math.MaxInt64 if there is no limit. The limit is read when Memory is first
// called.
var Memory = sync.OnceValue(func() int64 {
	return memoryOf(groups("/proc/self/cgroup", "/sys/fs/cgroup", "memory"))
})

func memoryOf(groups []string) int64 {
	usable := int64(math.MaxInt64)
	for _, dir := range groups {
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} { // in cgroup versions 2 and 1
			if n, ok := number(dir, file); ok {
				usable = min(usable, n/10*9)
			}
		}
	}
	return usable
}

// tasksOf returns how many more processes and threads the groups can have.
func tasksOf(groups []string) int64 {
	left := int64(math.MaxInt64)
	for _, dir := range groups {
		allowed, limited := number(dir, "pids.max")
		if now, ok := number(dir, "pids.current"); limited && ok {
			left = min(left, allowed-now)
		}
	}
	return left
}

// number reads a number from a file. ok is false if there is none: the file is missing, or it
// contains "max", which means no limit.
func number(dir, file string) (n int64, ok bool) {
	text, _ := os.ReadFile(filepath.Join(dir, file))
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// groups returns the directories of a process's control groups for a controller, and those of all
// groups above: see cgroups(7).
func groups(self, root, controller string) (dirs []string) {
	text, _ := os.ReadFile(self) // it exists only on Linux
	for line := range strings.Lines(string(text)) {
		group := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(group) != 3 || group[1] != "" && group[1] != controller {
			continue
		}
		tree := filepath.Join(root, group[1]) // version 2 has one tree for all controllers
		for dir := filepath.Clean("/" + group[2]); ; dir = filepath.Dir(dir) {
			dirs = append(dirs, filepath.Join(tree, dir))
			if dir == "/" {
				break
			}
		}
	}
	return dirs
}
