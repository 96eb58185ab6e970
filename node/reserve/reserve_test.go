//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package reserve

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// atMost limits the process to n descriptors until the test ends.
func atMost(t *testing.T, n int) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	now := old
	now.Cur = 0
	for range n { // the type of Cur differs between systems
		now.Cur++
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) })
}

// However many callers connect, a file can be opened. When some have left, others can connect.
func TestListener(t *testing.T) {
	atMost(t, Needed)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = Listener(l, slog.New(slog.DiscardHandler))
	defer l.Close()
	in := make(chan net.Conn, Needed)
	go func() {
		defer l.Close()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "in")
			in <- c
		}
	}()
	// dial reports whether a caller can connect.
	var ours []net.Conn
	dial := func() bool {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		n, _ := io.ReadFull(c, make([]byte, 2))
		ours = append(ours, c)
		return n > 0
	}
	for dial() {
		if len(ours) > Needed {
			t.Fatal("all callers can connect")
		}
	}
	if len(ours) < (Needed-Kept)/4 { // both ends are ours
		t.Errorf("only %d callers could connect", len(ours)-1)
	}
	if err := Left(); !errors.Is(err, ErrFew) {
		t.Errorf("Left returned %v, want ErrFew", err)
	}
	for range Kept / 2 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	for range ours[1:] {
		(<-in).Close()
	}
	for _, c := range ours {
		c.Close()
	}
	if !dial() {
		t.Error("no caller can connect any more")
	}
	if err := Left(); err != nil {
		t.Error(err)
	}
	ours[len(ours)-1].Close()
	(<-in).Close()
}

// failing is a listener that fails once.
type failing struct {
	net.Listener
	failed bool
}

func (f *failing) Accept() (net.Conn, error) {
	if f.failed {
		return f.Listener.Accept()
	}
	f.failed = true
	return nil, syscall.EMFILE
}

// A failure does not end a listener.
func TestListenerGoesOn(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listener(&failing{Listener: inner}, slog.New(slog.DiscardHandler))
	caller, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close returned %v", err)
	}
}

func TestEnough(t *testing.T) {
	atMost(t, Needed)
	if err := Enough(0); err != nil {
		t.Error(err)
	}
	if Enough(1) == nil {
		t.Error("Enough(1) returned no error")
	}
}

func TestQuarter(t *testing.T) {
	for ceiling, want := range map[int]int{20: 20, (Needed - Kept) / 4: 32, 512: 32} {
		atMost(t, Needed)
		if got := Quarter(ceiling); got != want {
			t.Errorf("Quarter is %d for a ceiling of %d, want %d", got, ceiling, want)
		}
	}
	for others, want := range map[int]int{20: Needed - Kept - 20, 512: Needed - Kept - 32} {
		if got := Rest(others); got != want {
			t.Errorf("%d of %d others leave %d, want %d", Quarter(others), others, got, want)
		}
	}
	atMost(t, Kept/2)
	if got := Quarter(512); got != 1 {
		t.Errorf("Quarter is %d for a limit below Kept, want 1", got)
	}
}

// A control group's limit applies to the groups below it.
func TestGroups(t *testing.T) {
	const none = math.MaxInt64
	for name, test := range map[string]struct {
		groups        string
		files         map[string]string
		memory, tasks int64
	}{
		"none": {"", nil, none, none},
		"unlimited": {"0::/\n",
			map[string]string{"memory.max": "max\n", "pids.max": "max\n", "pids.current": "3\n"}, none, none},
		"version 2": {"0::/a/b\n", map[string]string{
			"a/b/memory.max": "max\n", "a/memory.max": "1000\n",
			"a/b/pids.max": "50\n", "a/b/pids.current": "10\n", "a/pids.max": "60\n", "a/pids.current": "55\n",
		}, 900, 5},
		"version 1": {"2:cpu:/x\n4:memory:/a\n5:pids:/b\n0::/\n", map[string]string{
			"memory/a/memory.limit_in_bytes": "2000\n", "memory/x/memory.limit_in_bytes": "10\n",
			"pids/b/pids.max": "20\n", "pids/b/pids.current": "13\n", "pids/a/pids.max": "1\n", "pids/a/pids.current": "1\n",
		}, 1800, 7},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			self := filepath.Join(root, "self")
			files := map[string]string{"self": test.groups}
			for file, text := range test.files {
				files[file] = text
			}
			for file, text := range files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := memoryOf(groups(self, root, "memory")); got != test.memory {
				t.Errorf("memory: %d, want %d", got, test.memory)
			}
			if got := tasksOf(groups(self, root, "pids")); got != test.tasks {
				t.Errorf("tasks: %d, want %d", got, test.tasks)
			}
		})
	}
}
