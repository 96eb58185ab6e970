//go:build unix

package mark

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func open(t *testing.T, path string) *File {
	t.Helper()
	f, _, err := Open(OS{}, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func save(t *testing.T, f *File, milli uint64) {
	t.Helper()
	if err := f.Save(alone(Mark{Milli: milli})); err != nil {
		t.Fatal(err)
	}
}

func TestSaveAndOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	f, m, err := Open(OS{}, path)
	if len(m.Marks) > 0 || err != nil {
		t.Fatal(m, err)
	}
	if err := f.Save(alone(Mark{Milli: Max, Words: make([]uint64, MaxWords)})); err != nil {
		t.Error(err)
	}
	for _, milli := range []uint64{1000, 2000, 1500} {
		save(t, f, milli)
	}
	if err := f.Save(alone(Mark{Milli: Max + 1})); err == nil {
		t.Error("a mark above the highest is saved")
	}
	if err := f.Save(alone(Mark{Words: make([]uint64, MaxWords+1)})); err == nil {
		t.Error("more words than fit are saved")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(alone(Mark{Milli: 3000})); !errors.Is(err, os.ErrClosed) {
		t.Errorf("saved when closed: %v", err)
	}
	if f, m, err = Open(OS{}, path); len(m.Marks) != 1 || m.Marks[""].Milli != 1500 || m.Marks[""].Words != nil || err != nil {
		t.Fatal(m, err)
	}
	f.Close()
}

// failing is a disk that notes the steps of a save, and fails at one of them.
type failing struct {
	OS
	at    string
	steps []string
}

var errStep = errors.New("it fails")

func (d *failing) step(name string, do func() error) error {
	d.steps = append(d.steps, name)
	if name == d.at {
		return errStep
	}
	return do()
}

func (d *failing) Create(path string) (w Writer, err error) {
	err = d.step("create", func() error {
		file, err := d.OS.Create(path)
		w = &failingWriter{file, d}
		return err
	})
	return w, err
}

func (d *failing) Overwrite(path string, offset int64, data []byte) error {
	return d.step("overwrite", func() error { return d.OS.Overwrite(path, offset, data) })
}

func (d *failing) Rename(from, to string) error {
	return d.step("rename", func() error { return d.OS.Rename(from, to) })
}

func (d *failing) SyncDir(path string) error {
	return d.step("sync folder", func() error { return d.OS.SyncDir(path) })
}

type failingWriter struct {
	Writer
	d *failing
}

func (w *failingWriter) Write(p []byte) (n int, err error) {
	err = w.d.step("write", func() error { n, err = w.Writer.Write(p); return err })
	return n, err
}

func (w *failingWriter) Sync() error { return w.d.step("sync", w.Writer.Sync) }

func (w *failingWriter) Close() error {
	err := w.Writer.Close()
	return w.d.step("close", func() error { return err })
}

// A save is durable once it comes back, and one that fails at any step says so; up
// to the rename the old mark is there.
func TestSaveStepByStep(t *testing.T) {
	d := &failing{}
	path := filepath.Join(t.TempDir(), "mark")
	f, _, err := Open(d, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at, want := range map[string]string{
		"":            "create write sync close rename sync folder",
		"create":      "create",
		"write":       "create write close",
		"sync":        "create write sync close",
		"close":       "create write sync close",
		"rename":      "create write sync close rename",
		"sync folder": "create write sync close rename sync folder",
	} {
		d.at = ""
		save(t, f, 1000)
		put(t, path, "another file is in its place")
		d.at = ""
		save(t, f, 1000)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		d.at, d.steps = at, nil
		if err := f.Save(alone(Mark{Milli: 2000})); (at != "") != errors.Is(err, errStep) {
			t.Errorf("failing to %s: %v", at, err)
		}
		if got := strings.Join(d.steps, " "); got != want {
			t.Errorf("failing to %s, it does: %s", at, got)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read1(t *testing.T, path string) Content {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A save writes over one slot; if that fails, it writes a new file; if that fails too, what
// was saved before is there, and the next save goes on.
func TestSaveInPlace(t *testing.T) {
	d := &failing{}
	path := filepath.Join(t.TempDir(), "mark")
	f, _, err := Open(d, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	save(t, f, 1000)
	for milli := uint64(1001); milli < 1010; milli++ {
		d.steps = nil
		if save(t, f, milli); strings.Join(d.steps, " ") != "overwrite sync folder" {
			t.Errorf("it does %q", d.steps)
		}
		if got := read1(t, path).Marks[""].Milli; got != milli {
			t.Errorf("the mark is %d, and not %d", got, milli)
		}
	}
	d.at, d.steps = "overwrite", nil
	save(t, f, 2000)
	if got := strings.Join(d.steps, " "); got != "overwrite create write sync close rename sync folder" {
		t.Errorf("failing to overwrite, it does %s", got)
	}
	broken := &torn{failing: d}
	f.disk = broken
	for milli := range uint64(10) {
		d.at = "create"
		if err := f.Save(alone(Mark{Milli: 4000 + milli})); !errors.Is(err, errStep) {
			t.Errorf("saved: %v", err)
		}
		if got := read1(t, path).Marks[""].Milli; got >= 4000 || got < 2000 {
			t.Errorf("%d is left", got)
		}
		d.at, broken.off = "", true
		save(t, f, 3000+milli)
		broken.off = false
	}
}

// torn writes half of what is written in place, and fails.
type torn struct {
	*failing
	off bool
}

func (d *torn) Overwrite(path string, offset int64, data []byte) error {
	if d.off {
		return d.OS.Overwrite(path, offset, data)
	}
	return errors.Join(errStep, d.OS.Overwrite(path, offset, data[:20]))
}

// Whatever stands where the file was, the next save is there.
func TestReplaced(t *testing.T) {
	dir := t.TempDir()
	path, old := filepath.Join(dir, "mark"), filepath.Join(dir, "old")
	f := open(t, path)
	save(t, f, 1000)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, replace := range map[string]func() error{
		"removed":          func() error { return os.Remove(path) },
		"emptied":          func() error { return os.Truncate(path, 0) },
		"cut":              func() error { return os.Truncate(path, block) },
		"longer":           func() error { return os.Truncate(path, 3*block) },
		"an older one":     func() error { return os.WriteFile(old, data, 0o644) },
		"a copy in place":  func() error { return os.WriteFile(path, data, 0o644) },
		"a file of before": func() error { return os.WriteFile(path, []byte(version1), 0o644) },
		"read-only":        func() error { return os.Chmod(path, 0o444) },
	} {
		save(t, f, 2000)
		save(t, f, 3000)
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if name == "an older one" {
			if err := os.Rename(old, path); err != nil {
				t.Fatal(err)
			}
		}
		save(t, f, 4000)
		if got := read1(t, path).Marks[""].Milli; got != 4000 {
			t.Errorf("%s: the mark is %d", name, got)
		}
	}
}

// swapped has another file come in the place of this one while it is written.
type swapped struct {
	OS
	data []byte
}

func (d *swapped) Overwrite(path string, offset int64, data []byte) error {
	err := d.OS.Overwrite(path, offset, data)
	return errors.Join(err, os.Remove(path), os.WriteFile(path, d.data, 0o644))
}

func TestReplacedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	f := open(t, path)
	save(t, f, 1000)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.disk = &swapped{data: data}
	save(t, f, 2000)
	if got := read1(t, path).Marks[""].Milli; got != 2000 {
		t.Errorf("the mark is %d", got)
	}
}

// A content that has become longer than a slot gets longer ones.
func TestGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	f := open(t, path)
	marks := map[string]Mark{}
	for i := range 1000 {
		marks[strings.Repeat("x", i)] = Mark{Milli: uint64(i)}
		if i%50 == 0 || i == 999 {
			if err := f.Save(Content{Marks: marks}); err != nil {
				t.Fatal(err)
			}
			if got := read1(t, path).Marks; len(got) != len(marks) {
				t.Fatalf("%d marks of %d", len(got), len(marks))
			}
		}
	}
	marks[strings.Repeat("y", maxSize)] = Mark{}
	if err := f.Save(Content{Marks: marks}); err == nil {
		t.Error("more is saved than can be read")
	}
	delete(marks, strings.Repeat("y", maxSize))
	if err := f.Save(Content{Marks: marks}); err != nil {
		t.Error(err)
	}
}

// A file of before is read, and is of this version from the first save on.
func TestFileOfBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	put(t, path, version3)
	f, c, err := Open(OS{}, path)
	if err != nil || len(c.Marks) != 2 {
		t.Fatal(c, err)
	}
	if err := f.Save(c); err != nil {
		t.Fatal(err)
	}
	f.Close()
	data, err := os.ReadFile(path)
	if again := read1(t, path); err != nil || !reflect.DeepEqual(again, c) || !bytes.HasPrefix(data[offset(1, len(data)/2):], []byte("flake-mark 4 1 ")) {
		t.Errorf("%v, %v: %q", again, err, data)
	}
}

func TestLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	save(t, open(t, real), 1000)
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(OS{}, link); !errors.Is(err, ErrLocked) {
		t.Errorf("a link to a locked file: %v", err)
	}
}

// What is no mark is refused, with what to do, and stays as it is.
func TestRefused(t *testing.T) {
	good := written(Mark{Milli: 1000})
	var lock Lock
	for name, c := range map[string]struct {
		make func(path string) error
		says []string
	}{
		"empty":      {file(nil), []string{"is empty", "move"}},
		"corrupt":    {file(append([]byte(nil), bytes.ReplaceAll(good, []byte("1000"), []byte("1001"))...)), []string{"damaged", "move"}},
		"cut":        {file(good[block : block+15]), []string{"damaged", "move"}},
		"foreign":    {file([]byte("root:x:0:0:root:/root:/bin/sh\n")), []string{"not a mark", "move"}},
		"large":      {file(bytes.Repeat([]byte("flake-mark 1 "), 1e6)), []string{"bytes or more", "move"}},
		"dets":       {file([]byte("\x00\x00\x15\x60\x00\xab\xcd\xef\x00\x00\x00\x01")), []string{"dets file", "flake import -dets "}},
		"erlang":     {file([]byte("\x83n\x06\x00\x00\x68\xe5\xcf\x8b\x01")), []string{"Erlang", "move"}},
		"future":     {file([]byte("flake-mark 7 new things\n")), []string{"version 7", "versions 1 to 4"}},
		"folder":     {func(path string) error { return os.Mkdir(path, 0o755) }, []string{"is a folder", "another path"}},
		"pipe":       {func(path string) error { return syscall.Mkfifo(path, 0o644) }, []string{"not a regular file"}},
		"read-only":  {func(path string) error { return os.WriteFile(path, good, 0o444) }, []string{"read-only", "write"}},
		"dead link":  {func(path string) error { return os.Symlink(path+".none", path) }, []string{"no such file"}},
		"lock taken": {func(path string) error { return os.Mkdir(path+".lock", 0o755) }, []string{".lock", "is a directory"}},
		"locked": {func(path string) (err error) {
			lock, err = OS{}.Lock(path + ".lock")
			return err
		}, []string{"another node", "worker_id"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mark")
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(regular(path))
			f, m, err := Open(OS{}, path)
			if err == nil {
				f.Close()
				t.Fatalf("it is opened: %v", m)
			}
			for _, word := range append(c.says, "timestamp_path", path) {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v\ndoes not say %q", err, word)
				}
			}
			if after, _ := os.ReadFile(regular(path)); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			if name == "locked" {
				lock.Close()
			}
			// A refusal leaves no lock behind.
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			syscall.Rmdir(path + ".lock")
			open(t, path)
		})
	}
}

func file(data []byte) func(string) error {
	return func(path string) error { return os.WriteFile(path, data, 0o644) }
}

// regular keeps ReadFile from waiting at a pipe.
func regular(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// In a folder for everybody, as /tmp is, others could make the files first.
func TestFolderForEverybody(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(OS{}, filepath.Join(dir, "mark")); err == nil || !strings.Contains(err.Error(), "every user can write") {
		t.Error(err)
	}
}

// What another user has put where the new mark is written is not written to.
func TestFileOfAStranger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	f := open(t, path)
	if err := os.WriteFile(path+".new", []byte("theirs"), 0o666); err != nil {
		t.Fatal(err)
	}
	theirs, err := os.Open(path + ".new")
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	save(t, f, 1000)
	if got, err := io.ReadAll(theirs); string(got) != "theirs" {
		t.Errorf("%q, %v", got, err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(path+".new", "theirs"), 0o755), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(alone(Mark{Milli: 2000})); err == nil || !strings.Contains(err.Error(), "remove") {
		t.Errorf("a folder that is in the way: %v", err)
	}
}

// Where a device was unmounted there is another folder: nothing is kept there.
func TestUnmounted(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "mark"))
	save(t, f, 1000)
	f.lock.(*fileLock).device++
	if err := f.Save(alone(Mark{Milli: 2000})); err == nil || !strings.Contains(err.Error(), "another device") {
		t.Error(err)
	}
	f.lock.(*fileLock).device--
	save(t, f, 3000)
}

func TestNoFolder(t *testing.T) {
	for path, says := range map[string]string{
		filepath.Join(t.TempDir(), "none", "mark"): "make the folder",
		"":                "empty",
		"/dev/null/mark":  "not a directory",
		"mark\x00of zero": "invalid argument",
	} {
		if _, _, err := Open(OS{}, path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", path, err, says)
		}
	}
	if l, err := (OS{}).Lock("/none/mark.lock"); err == nil {
		t.Error(l)
	}
}

// Whatever happens, Close leaves no file open.
func TestFilesAreClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	descriptors := func() int {
		t.Helper()
		all, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	use := func() {
		t.Helper()
		f, _, err := Open(OS{}, path)
		if err != nil {
			t.Fatal(err)
		}
		save(t, f, 1000)
		if err := os.Remove(path + ".lock"); err != nil {
			t.Fatal(err)
		}
		save(t, f, 2000)
		if _, _, err := Open(OS{}, path); !errors.Is(err, ErrLocked) {
			t.Fatal(err)
		}
		f.Close()
	}
	use()
	before := descriptors()
	use()
	if now := descriptors(); now != before {
		t.Errorf("%d files are open, and were %d", now, before)
	}
}

// A path is to stay the same one whatever becomes the working folder.
func TestNoWorkingFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	gone, err := os.Getwd()
	if err == nil {
		err = os.Remove(gone)
	}
	if err != nil {
		t.Fatal(err)
	}
	if path, err := (OS{}).Resolve("mark"); err == nil {
		t.Error(path)
	}
}
