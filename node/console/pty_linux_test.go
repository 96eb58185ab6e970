package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openPTY returns both ends of a pseudo-terminal: the user's and the program's.
func openPTY(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close() })
	raw, err := user.SyscallConn() // Fd would make reads block and Close wait for them
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	raw.Control(func(fd uintptr) {
		if n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
		if err == nil {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return user, program
}

// patience bounds how long a test waits for something that must happen.
const patience = 5 * time.Minute

// session is a Console that runs on a pseudo-terminal.
type session struct {
	*testing.T
	console *Console
	user    *os.File
	ended   chan error

	mu   sync.Mutex
	seen bytes.Buffer
}

func startSession(t *testing.T, ctx context.Context) *session {
	t.Helper()
	user, program := openPTY(t)
	s := &session{T: t, user: user, ended: make(chan error, 1)}
	s.console = New(Options{Node: "n@h", In: program, Out: program, Functions: functions.call, Help: []Section{
		{"tests", []Help{{"t:sleep()", "sleeps"}, {"t:exit(Reason)", "exits"}}},
	}})
	go io.Copy(s, user)
	go func() { s.ended <- s.console.Run(ctx) }()
	return s
}

// Write records what the user sees.
func (s *session) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.Write(p)
}

// expect waits until the user sees text, and discards the output up to the end of that text.
func (s *session) expect(text string) {
	s.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		i := strings.Index(s.seen.String(), text)
		if i >= 0 {
			s.seen.Next(i + len(text))
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Fatalf("no %q in %q", text, s.seen.String())
}

func (s *session) typed(keys string) {
	s.Helper()
	if _, err := s.user.WriteString(keys); err != nil {
		s.Fatal(err)
	}
}

func (s *session) end() {
	s.Helper()
	select {
	case err := <-s.ended:
		if err != nil {
			s.Error(err)
		}
	case <-time.After(patience):
		s.Fatal("Run has not returned")
	}
}

func TestTerminal(t *testing.T) {
	s := startSession(t, context.Background())
	s.expect("(n@h)1> ")
	s.typed("{a,\r")
	s.expect("{a,\r\n(n@h)1> ")
	s.typed("b}.\r")
	s.expect("b}.\r\n{a,b}\r\n(n@h)2> ")
	s.typed("1. a b.\r")
	s.expect("1. a b.\r\n1\r\n* 1:3: syntax error before: b\r\n(n@h)3> ")
	s.typed("\x04") // does nothing
	s.typed("q().\r")
	s.expect("q().\r\nok\r\n")
	s.end()
}

func TestTerminalEditing(t *testing.T) {
	s := startSession(t, context.Background())
	s.typed("first.\r")
	s.expect("\r\nfirst\r\n(n@h)2> ")
	s.typed("\r\x1b[A\x1b[Dly\r") // up, left
	s.expect("\r\nfirstly\r\n(n@h)3> ")
	s.typed("t:e\t{}).\r")
	s.expect("t:exit({}).\r\n** exception exit: {}\r\n     in function  t:exit/1\r\n(n@h)4> ")
	s.typed("1")
	s.expect("1")
	fmt.Fprint(s.console, "a log line\n")
	s.expect("a log line\r\n(n@h)4> 1")
	s.typed("2.\r")
	s.expect("\r\n12\r\n(n@h)5> ")
	s.user.Close() // hangs up
	s.end()
}

func TestTerminalCtrlC(t *testing.T) {
	s := startSession(t, context.Background())
	s.expect("1> ")
	s.typed("1\x03")
	s.expect("again")
	s.typed("2.\r") // the line remains
	s.expect("\r\n12\r\n(n@h)2> ")
	s.typed("\x03")
	s.expect("again")
	s.typed("t:sleep().\r")
	s.expect("t:sleep().\r\n")
	s.typed("\x03\x03")
	s.end()
}

// Run returns when its context ends, whatever it is waiting for.
func TestRunEnds(t *testing.T) {
	for _, input := range []string{"", "t:sleep().\r"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		s := startSession(t, ctx)
		s.expect("1> ")
		if input != "" {
			s.typed(input)
			s.expect("t:sleep().\r\n")
		}
		cancel(os.ErrDeadlineExceeded)
		if err := <-s.ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after input %q: Run returned %v", input, err)
		}
	}
}

func TestCompletion(t *testing.T) {
	names := &terminal{complete: []string{"b(", "help(", "h(", "flake:start(", "flake_server:id(", "flake:stop("}}
	for _, tt := range []struct{ line, want string }{
		{"", ""},
		{"X = ", "X = "},
		{"hel", "help("},
		{"h", "h"},
		{"flake:", "flake:st"},
		{"{flake_", "{flake_server:id("},
		{"none", "none"},
	} {
		got, at, ok := names.completed(tt.line+")", len(tt.line), '\t')
		if got != tt.want+")" || at != len(tt.want) || !ok {
			t.Errorf("%q: %q, at %d, %t, want %q", tt.line, got, at, ok, tt.want)
		}
	}
	if _, _, ok := names.completed("hel", 3, 'p'); ok {
		t.Error("a key other than tab completes the word")
	}
}
