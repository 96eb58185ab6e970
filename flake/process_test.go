//go:build unix

package flake

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var kills = flag.Int("kills", 2, "how many times to kill a process with signal 9; each restart takes 3 s")

// If childEnv is set, the test binary runs child: it is the process that TestKilled kills.
const childEnv = "FLAKE_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := child(path, os.Getenv(childEnv+"_FULL") != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child writes the ids of two generators in turn to standard output until it is killed. If full is
// set, it runs fillDisk instead.
func child(path string, full bool) error {
	marks, err := OpenMarks(path, nil)
	if err != nil {
		return err
	}
	d, err := Open(context.Background(), "", 1, Options{Marks: marks})
	if err != nil {
		return err
	}
	if full {
		return errors.Join(fillDisk(d), marks.Close())
	}
	other, err := Open(context.Background(), "other", 2, Options{Marks: marks})
	if err != nil {
		return err
	}
	ids := make([]ID, 64)
	for {
		if _, err := d.NextN(context.Background(), ids); errors.Is(err, ErrTimestampNotSaved) {
			continue // the disk is slow: try again
		} else if err != nil {
			return err
		}
		d, other = other, d
		for _, id := range ids {
			if _, err := os.Stdout.Write(id[:]); err != nil {
				return err
			}
		}
	}
}

// fillDisk keeps files from growing, as a full disk does, and makes ids until they fail for that
// reason. Then it lifts the limit and waits until ids can be made again.
func fillDisk(d *Generator) error {
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	none := syscall.Rlimit{Cur: 0, Max: before.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &none); err != nil {
		return err
	}
	var id ID
	err := error(nil)
	for last := id; !errors.Is(err, syscall.EFBIG); {
		id, err = d.Next(context.Background())
		switch {
		case err == nil && (id.Compare(last) <= 0 || id.Milli() > uint64(d.Mark().UnixMilli())):
			return fmt.Errorf("%v after %v with the mark at %v", id, last, d.Mark())
		case err == nil:
			last = id
		case !errors.Is(err, ErrTimestampNotSaved): // that error alone may mean a slow disk
			return err
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	for err != nil {
		_, err = d.Next(context.Background())
	}
	return nil
}

func childOf(t *testing.T, path string, more ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // far longer than a child needs
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(append(os.Environ(), childEnv+"="+path), more...)
	return cmd
}

func TestKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "timestamp")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	last := map[Worker]ID{}
	total := 0
	for range *kills + 1 {
		cmd := childOf(t, path)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in, killAt, n := bufio.NewReader(out), rng.IntN(200_000), 0
		for ; ; n++ {
			if n == killAt {
				cmd.Process.Kill()
			}
			var id ID
			if _, err := io.ReadFull(in, id[:]); err != nil {
				break // all ids that were in the pipe have been read
			}
			if before := last[id.Worker()]; id.Compare(before) <= 0 {
				t.Fatalf("%v after %v", id, before)
			}
			last[id.Worker()] = id
		}
		cmd.Wait()
		if n < killAt {
			t.Fatalf("the child failed, or took more than 2 minutes: %s", said.String())
		}
		total += n
	}
	t.Logf("%d ids from %d processes, each higher than its generator's last", total, *kills+1)
}

func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	if out, err := childOf(t, filepath.Join(t.TempDir(), "timestamp"),
		childEnv+"_FULL=1").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
