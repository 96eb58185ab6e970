package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/internal/files"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/original"
	"github.com/flake-go/flake/rel/flake/output"
)

// ImportMore is the help of [Import].
const ImportMore = `Stop the original first. Its dets file, which timestamp_path in its sys.config names,
contains the time of its last ids, and this node makes no ids before that time. A
configuration is written from its sys.config and vm.args, and import prints what it
took and what it left. The original's files stay as they are.

The mark, in the file that -timestamp names, is created or raised, never lowered.`

type imports struct {
	dets, sysConfig, vmArgs, out, timestamp string
	overwrite                               bool
}

// Import imports what boundary/flake left on disk.
func Import(f *cli.Flags) cli.Action {
	var i imports
	f.StringVar(&i.dets, "dets", "", "the original's dets `FILE`; without it, the one that its sys.config names")
	f.StringVar(&i.sysConfig, "sys-config", "", "its sys.config `FILE`")
	f.StringVar(&i.vmArgs, "vm-args", "", "its vm.args `FILE`")
	f.StringVar(&i.out, "out", "sys.toml", "write the configuration to `FILE`")
	f.StringVar(&i.timestamp, "timestamp", "", "keep the mark in `FILE`, flake.timestamp_path; "+
		"without it, at the default path")
	f.BoolVar(&i.overwrite, "overwrite", false, "replace the -out file")
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		if name := f.Given("out", "overwrite"); name != "" && !i.configures() {
			return cli.UsageError(fmt.Errorf("-%s needs -sys-config or -vm-args", name))
		}
		return i.run(ctx, stdout)
	}
}

func (i *imports) run(ctx context.Context, stdout io.Writer) error {
	s, state, err := i.read()
	if err != nil {
		return cli.UsageError(err)
	}
	if i.timestamp != "" {
		s.TimestampPath, err = filepath.Abs(i.timestamp)
	} else {
		s.TimestampPath, err = cli.TimestampPath()
	}
	if err != nil {
		return err
	}
	text, err := s.TOML()
	if err != nil {
		return cli.UsageError(err)
	}
	if err := i.checkOut(s.TimestampPath); err != nil {
		return cli.UsageError(err)
	}
	i.print(stdout, s, state)
	end, err := flake.RaiseMark(s.TimestampPath, time.UnixMilli(int64(state.Mark())))
	if err != nil {
		return err
	}
	if err := giveToOwner(s.TimestampPath); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: ids begin after %s\n", s.TimestampPath, output.Milliseconds(end))
	if i.configures() {
		if err := i.configure(stdout, text); err != nil {
			return fmt.Errorf("-out: %w", err)
		}
	}
	fmt.Fprintln(stdout, noMesh)
	return waitForMark(ctx, stdout, end)
}

// checkOut returns an error if writing the configuration would replace a file that must be kept.
func (i *imports) checkOut(timestamp string) error {
	if !i.configures() {
		return nil
	}
	for _, other := range []struct{ flag, path string }{
		{"dets", i.dets}, {"sys-config", i.sysConfig}, {"vm-args", i.vmArgs}, {"timestamp", timestamp},
	} {
		if other.path != "" && sameFile(i.out, other.path) {
			return fmt.Errorf("-out %s: that is the -%s file, which must stay as it is", i.out, other.flag)
		}
	}
	switch info, err := os.Lstat(i.out); {
	case err != nil: // usually because it does not exist
	case info.IsDir():
		return fmt.Errorf("-out %s: is a directory", i.out)
	case !i.overwrite:
		return fmt.Errorf("-out %s: already exists; name another file, or replace it with -overwrite", i.out)
	}
	return nil
}

// sameFile reports whether two names refer to the same file, which need not exist.
func sameFile(a, b string) bool {
	if info, err := os.Stat(a); err == nil {
		other, err := os.Stat(b)
		return err == nil && os.SameFile(info, other)
	}
	a, err := filepath.Abs(a)
	b, otherErr := filepath.Abs(b)
	return err == nil && otherErr == nil && a == b
}

// configures reports whether a configuration will be written.
func (i *imports) configures() bool { return i.sysConfig != "" || i.vmArgs != "" }

func (i *imports) read() (s original.Settings, state original.State, err error) {
	if err := readFiles(i.sysConfig, i.vmArgs, &s); err != nil {
		return s, state, err
	}
	switch {
	case i.dets != "":
	case i.sysConfig == "":
		return s, state, errors.New("no dets file: set -dets FILE, or a -sys-config that names it")
	default:
		i.dets = cmp.Or(s.DetsPath, original.DefaultDets)
	}
	state, err = original.ReadDets(i.dets)
	return s, state, err
}

// readFiles reads the files whose paths are not empty.
func readFiles(sysConfig, vmArgs string, s *original.Settings) (err error) {
	if sysConfig != "" {
		err = original.ReadSysConfig(sysConfig, s)
	}
	if err == nil && vmArgs != "" { // its settings override those of sys.config
		err = original.ReadVMArgs(vmArgs, s)
	}
	return err
}

func (i *imports) print(w io.Writer, s original.Settings, state original.State) {
	printSettings(w, s)
	last := "it contains no time"
	if state.Last > 0 {
		last = "its time is " + output.Milliseconds(time.UnixMilli(int64(state.Last)))
	}
	closed := "it was closed"
	if !state.Closed {
		closed = "it was not closed: the original was killed, or is running"
	}
	fmt.Fprintf(w, "%s: written at %s; %s; %s\n", i.dets, output.Milliseconds(state.Modified), last, closed)
	for _, at := range []time.Time{state.Modified, time.UnixMilli(int64(state.Last))} {
		if ahead := time.Until(at); ahead > 0 {
			fmt.Fprintf(w, "%s: %s is %v ahead of this machine's clock: correct the clock first if it is wrong\n",
				i.dets, output.Milliseconds(at), ahead.Round(time.Millisecond))
		}
	}
}

// giveToOwner, when run by root, makes the owner of the directory the owner of the mark and its lock.
// Otherwise a node that runs as that owner could not lock or read them.
func giveToOwner(mark string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	path, err := filepath.EvalSymlinks(mark) // the lock is next to the real file
	if err != nil {
		return err
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	user, group := files.Owner(folder)
	return errors.Join(os.Lchown(path, user, group), os.Lchown(path+".lock", user, group))
}

func printSettings(w io.Writer, s original.Settings) {
	for _, line := range s.Taken {
		fmt.Fprintln(w, "taken:", escape.Text(line))
	}
	for _, line := range s.Left {
		fmt.Fprintln(w, "left: ", escape.Text(line))
	}
}

// configure writes the configuration, which contains the cookie, and prints what must still be changed in it.
func (i *imports) configure(stdout io.Writer, text []byte) error {
	name := i.out
	if i.overwrite { // the file to be replaced may be a link, or readable by other users
		name += ".new"
	}
	if err := writeNew(name, text); err != nil {
		return err
	}
	if i.overwrite {
		if err := os.Rename(name, i.out); err != nil {
			return errors.Join(err, os.Remove(name))
		}
	}
	fmt.Fprintf(stdout, "%s: written\n", i.out)
	if _, err := config.Load(i.out); err != nil {
		fmt.Fprintf(stdout, "before starting, change it:\n%v\n", err)
	}
	return nil
}

// writeNew creates a file that only its owner may read. The file must not exist yet.
func writeNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// waitForMark waits until the clock is past the mark, because a starting node may refuse to wait that
// long. If the wait would be longer than the margin, waitForMark only prints its length.
func waitForMark(ctx context.Context, stdout io.Writer, end time.Time) error {
	wait := time.Until(end)
	switch {
	case wait <= 0:
		return nil
	case wait > original.Margin:
		fmt.Fprintf(stdout, "a node cannot start before then: in %v\n", wait.Round(time.Second))
		return nil
	}
	fmt.Fprintf(stdout, "waiting until then: %v\n", wait.Round(time.Millisecond))
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return nil
}
