//go:build unix

package mark

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
	if err := f.Save(alone(milli)); err != nil {
		t.Fatal(err)
	}
}

// saved fails unless the file at path has the mark.
func saved(t *testing.T, path string, milli uint64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := Parse(data); c.Marks[""].Milli != milli || err != nil {
		t.Errorf("the file has %v, %v, want %d", c, err, milli)
	}
}

func TestSaveAndOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	f, c, err := Open(OS{}, path)
	if len(c.Marks) > 0 || err != nil {
		t.Fatal(c, err)
	}
	if err := f.Save(Content{Marks: map[string]Mark{"": {Milli: Max, Latest: Max,
		Words: make([]uint64, MaxWords)}}}); err != nil {
		t.Error(err)
	}
	for _, milli := range []uint64{1000, 2000, 1500} {
		save(t, f, milli)
		saved(t, path, milli)
	}
	for name, wrong := range map[string]Content{
		"above the highest":       alone(Max + 1),
		"above the latest":        {Marks: map[string]Mark{"": {Milli: 2, Latest: 1}}},
		"more words than fit":     {Marks: map[string]Mark{"": {Words: make([]uint64, MaxWords+1)}}},
		"a name that is not text": {Marks: map[string]Mark{"\xff": {}}},
	} {
		if err := f.Save(wrong); err == nil {
			t.Errorf("%s: the content was saved", name)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(alone(3000)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("saved when closed: %v", err)
	}
	if f, c, err = Open(OS{}, path); !reflect.DeepEqual(c, alone(1500)) || err != nil {
		t.Fatal(c, err)
	}
	f.Close()
}

// failing is a disk that records the steps of a save, some of which fail.
type failing struct {
	OS
	at    string   // the steps that fail
	steps []string // the steps so far
}

var errStep = errors.New("it fails")

func (d *failing) step(name string, do func() error) error {
	d.steps = append(d.steps, name)
	if slices.Contains(strings.Fields(d.at), name) {
		return errStep
	}
	return do()
}

func (d *failing) Overwrite(path string, offset int64, data []byte) error {
	return d.step("overwrite", func() error { return d.OS.Overwrite(path, offset, data) })
}

func (d *failing) Create(path string, data []byte) error {
	return d.step("create", func() error { return d.OS.Create(path, data) })
}

func (d *failing) Rename(from, to string) error {
	return d.step("rename", func() error { return d.OS.Rename(from, to) })
}

func (d *failing) SyncDir(path string) error {
	return d.step("sync-folder", func() error { return d.OS.SyncDir(path) })
}

// A mark that cannot be written in place is written to a new file, in steps that make it durable. If
// a step fails, so does the save. Until the rename, the file has the old mark.
func TestSaveStepByStep(t *testing.T) {
	d := &failing{}
	path := filepath.Join(t.TempDir(), "mark")
	f, _, err := Open(d, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at, want := range map[string]string{
		"":                      "overwrite overwrite",
		"overwrite":             "overwrite create rename sync-folder",
		"overwrite create":      "overwrite create",
		"overwrite rename":      "overwrite create rename",
		"overwrite sync-folder": "overwrite create rename sync-folder",
	} {
		d.at = ""
		save(t, f, 1000)
		d.at, d.steps = at, nil
		fails := strings.Contains(at, " ")
		if err := f.Save(alone(2000)); fails != errors.Is(err, errStep) {
			t.Errorf("failing to %s: %v", at, err)
		}
		if got := strings.Join(d.steps, " "); got != want {
			t.Errorf("failing to %s, the steps are %s", at, got)
		}
		if fails && at != "overwrite sync-folder" {
			saved(t, path, 1000)
		} else {
			saved(t, path, 2000)
		}
	}
}

// Damaged says which slot was damaged when the file was opened.
func TestDamaged(t *testing.T) {
	m := imageOf(t, alone(1)).saving(t, alone(2))
	for at, want := range map[int]string{-1: "", block - 1: "first", block: "second"} {
		data := bytes.Clone(m.data)
		if at >= 0 {
			data[at]++
		}
		path := filepath.Join(t.TempDir(), "mark")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		f := open(t, path)
		save(t, f, 3)
		if got := f.Damaged(); got != want {
			t.Errorf("a change at %d: %q, want %q", at, got, want)
		}
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

// Open refuses a file that is not a mark, says what to do, and leaves the file as it is.
func TestRefused(t *testing.T) {
	good := fileOf(t, 1000)
	var lock Lock
	for name, c := range map[string]struct {
		make func(path string) error
		says []string
	}{
		"empty":     {file(nil), []string{"is empty", "move"}},
		"corrupt":   {file(bytes.ReplaceAll(good, []byte(":1000"), []byte(":1001"))), []string{"damaged", "move"}},
		"cut":       {file(good[:15]), []string{"damaged", "move"}},
		"truncated": {file(good[:len(good)/2]), []string{"damaged", "move"}},
		"foreign":   {file([]byte("root:x:0:0:root:/root:/bin/sh\n")), []string{"not a mark", "move"}},
		"large":     {file(bytes.Repeat([]byte("flake-mark 1 "), 1e6)), []string{"bytes or more", "move"}},
		"dets": {file([]byte("\x00\x00\x15\x60\x00\xab\xcd\xef\x00\x00\x00\x01")),
			[]string{"dets file", "flake import -dets "}},
		"future":    {file([]byte("flake-mark 7 new things\n")), []string{"version 7", "reads version 1"}},
		"folder":    {func(path string) error { return os.Mkdir(path, 0o755) }, []string{"is a directory", "another path"}},
		"pipe":      {func(path string) error { return syscall.Mkfifo(path, 0o644) }, []string{"not a regular file"}},
		"read-only": {func(path string) error { return os.WriteFile(path, good, 0o444) }, []string{"read-only", "write"}},
		"dead link": {func(path string) error { return os.Symlink(path+".none", path) },
			[]string{"no such file", "it is a link", "is missing", "or set another path"}},
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
			f, content, err := Open(OS{}, path)
			if err == nil {
				f.Close()
				t.Fatalf("Open succeeded: %v", content)
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
			// A failed Open leaves no lock.
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

// regular keeps ReadFile from waiting for a pipe.
func regular(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// In a directory like /tmp, any user could create the files first.
func TestFolderForEverybody(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(OS{}, filepath.Join(dir, "mark")); err == nil ||
		!strings.Contains(err.Error(), "world-writable") {
		t.Error(err)
	}
}

// A file that another user has created at the temporary path is not written to.
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
	save(t, f, 1000) // the first save writes a temporary file
	if got, err := io.ReadAll(theirs); string(got) != "theirs" {
		t.Errorf("%q, %v", got, err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(path+".new", "theirs"), 0o755), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(alone(2000)); err == nil || !strings.Contains(err.Error(), "remove") {
		t.Errorf("a directory that is in the way: %v", err)
	}
}

// If a device was unmounted, another directory is at its path. Nothing is written there.
func TestUnmounted(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "mark"))
	save(t, f, 1000)
	f.lock.(*fileLock).device++
	if err := f.Save(alone(2000)); err == nil || !strings.Contains(err.Error(), "another device") {
		t.Error(err)
	}
	f.lock.(*fileLock).device--
	save(t, f, 3000)
}

func TestNoFolder(t *testing.T) {
	for path, says := range map[string]string{
		filepath.Join(t.TempDir(), "none", "mark"): "create the directory",
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

// Close leaves no file open, even after the lock was taken again.
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
		t.Errorf("%d files are open, want %d", now, before)
	}
}

// A relative path cannot be resolved if the working directory was removed.
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

// Save does not write a file that is too large for Open.
func TestLargest(t *testing.T) {
	c := alone(1000)
	c.Marks[strings.Repeat("a", maxSize/4-block/4)] = Mark{}
	if m := imageOf(t, c); len(m.data) != maxSize {
		t.Fatalf("the file has %d bytes", len(m.data))
	}
	if err := open(t, filepath.Join(t.TempDir(), "mark")).Save(c); !errors.Is(err, errLarge) {
		t.Error(err)
	}
}

// A pipe that has replaced the file is not waited for.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (OS{}).Overwrite(path, 0, []byte("1")); err == nil {
		t.Error("a pipe is overwritten")
	}
}
