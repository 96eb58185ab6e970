//go:build unix

package mark

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// On a full disk, a file can be overwritten in place, but not created or extended.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	d := &failing{}
	f := openOn(t, d, path)
	save(t, f, 1)
	d.at = "create"
	for milli := uint64(2); milli < 10; milli++ {
		save(t, f, milli)
		saved(t, path, milli)
	}
	f.Close()
	f = openOn(t, d, path) // also after a restart
	save(t, f, 10)
	if err := f.Save(large(1)); !errors.Is(err, errStep) {
		t.Errorf("more than fits: %v", err)
	}
	saved(t, path, 10)
	save(t, f, 11)
	saved(t, path, 11)
}

func openOn(t *testing.T, d Disk, path string) *File {
	t.Helper()
	f, _, err := Open(d, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// large returns content that needs slots of at least n+1 blocks.
func large(n int) Content {
	return Content{Workers: map[string]Worker{"": {Machine: strings.Repeat("x", n*block)}}}
}

// Slots grow with their content, and never shrink.
func TestGrowth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	d := &failing{}
	f := openOn(t, d, path)
	for n, want := range []string{"create rename sync-folder", "create rename sync-folder", "overwrite overwrite"} {
		d.steps = nil
		c := large(min(n, 1))
		if err := f.Save(c); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d.steps, " "); got != want {
			t.Errorf("%d blocks: the steps are %s", n, got)
		}
		data, err := os.ReadFile(path)
		if back, parseErr := Parse(data); err != nil || parseErr != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%d blocks: %v, %v", n, err, parseErr)
		}
	}
	if err := f.Save(large(maxSize / block)); err == nil || !strings.Contains(err.Error(), "bytes or more") {
		t.Errorf("more than can be read: %v", err)
	}
	save(t, f, 1)
	if data, err := os.ReadFile(path); err != nil || len(data) != 2*3*block {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	saved(t, path, 1)
}

// Whatever other programs do to the file, the next save leaves an intact file. Later saves are in
// place again.
func TestChangedByOthers(t *testing.T) {
	write := func(path string, data []byte) error { return os.WriteFile(path, data, 0o644) }
	for name, change := range map[string]func(path string, old []byte) error{
		"removed":                      func(path string, _ []byte) error { return os.Remove(path) },
		"truncated":                    func(path string, _ []byte) error { return os.Truncate(path, block) },
		"emptied":                      func(path string, _ []byte) error { return os.Truncate(path, 0) },
		"longer":                       func(path string, _ []byte) error { return os.Truncate(path, 4*block) },
		"overwritten with an old file": write,
		"replaced by an old file": func(path string, old []byte) error {
			return errors.Join(write(path+".old", old), os.Remove(path), os.Link(path+".old", path))
		},
		"damaged": func(path string, old []byte) error {
			return write(path, bytes.ReplaceAll(old, []byte("milli"), []byte("nilli")))
		},
		"foreign":   func(path string, _ []byte) error { return write(path, []byte("foreign")) },
		"read-only": func(path string, _ []byte) error { return os.Chmod(path, 0o444) },
		"a link": func(path string, _ []byte) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		},
	} {
		path := filepath.Join(t.TempDir(), "mark")
		d := &failing{}
		f := openOn(t, d, path)
		save(t, f, 1)
		save(t, f, 2)
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		save(t, f, 3)
		sequence := f.now.sequence
		if err := change(path, old); err != nil {
			t.Fatal(err)
		}
		save(t, f, 4)
		saved(t, path, 4)
		if left, err := os.ReadFile(path + ".old"); err == nil && !bytes.Equal(left, old) {
			t.Errorf("%s: the other file is written to", name)
		}
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() != 2*block {
			t.Errorf("%s: after a save the file is %v, %v", name, info, err)
		}
		d.steps = nil
		save(t, f, 5)
		if got := fmt.Sprint(d.steps); got != "[overwrite overwrite]" || f.now.sequence != sequence+2 {
			t.Errorf("%s: the steps of the next save are %s", name, got)
		}
		f.Close()
		if _, c, err := Open(OS{}, path); c.Marks[""].Milli != 5 || err != nil {
			t.Errorf("%s: opened again, the file has %v, %v", name, c, err)
		}
	}
}

// Other programs may also change the file during a save, at either slot. The save ends with both slots
// written.
func TestChangedInASave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	d := &between{step: "overwrite"}
	f := openOn(t, d, path)
	save(t, f, 1)
	save(t, f, 2)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	save(t, f, 3)
	milli := uint64(4)
	zeros := func(slot int64) error { return OS{}.Overwrite(path, slot*block, make([]byte, block)) }
	for name, change := range map[string]func(before []byte) error{
		"removed":          func([]byte) error { return os.Remove(path) },
		"an old one":       func([]byte) error { return errors.Join(os.Remove(path), os.WriteFile(path, old, 0o644)) },
		"the one before":   func(before []byte) error { return os.WriteFile(path, before, 0o644) },
		"zeros, at first":  func([]byte) error { return zeros(0) },
		"zeros, at second": func([]byte) error { return zeros(1) },
	} {
		for _, d.step = range []string{"overwrite", "overwritten"} {
			for _, second := range []bool{false, true} {
				before, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				do := func() {
					if err := change(before); err != nil {
						t.Error(name, err)
					}
				}
				if d.do = do; second {
					d.do = func() { d.do = do }
				}
				save(t, f, milli)
				saved(t, path, milli)
				data, err := os.ReadFile(path)
				if err != nil || !bytes.Equal(data[:block], data[block:]) {
					t.Errorf("%s, when a slot is %s; the second: %v: the slots differ, %v", name, d.step, second, err)
				}
				milli++
			}
		}
	}
}

// If a save in place fails at either slot, and no new file can be written, the other slot stays. The
// next save is in place again, and begins with the slot that was not written.
func TestSaveThatFailsInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	torn := &tearing{}
	f := openOn(t, torn, path)
	for milli := uint64(1); milli < 20; milli++ {
		save(t, f, milli)
		torn.after, torn.at = int(milli%2), int(milli)*4 // in the header or the content
		want := milli
		if torn.after == 1 {
			want = 1000 // the first try writes one slot
		}
		for tries := range uint64(3) {
			torn.slots = nil
			if err := f.Save(alone(1000 + tries)); !errors.Is(err, errStep) || !errors.Is(err, errTorn) {
				t.Fatal(err)
			}
			saved(t, path, want)
			torn.after = 0
			data, err := os.ReadFile(path)
			if err != nil || !f.now.in(data) || torn.slots[len(torn.slots)-1] == f.now.slot {
				t.Fatalf("the slots %v were written, and %d was intact, %v", torn.slots, f.now.slot, err)
			}
		}
		torn.at = 0
	}
	save(t, f, 20)
	saved(t, path, 20)
}

// If at is above 0, tearing is a disk that overwrites only the first at bytes, after a few slots
// that it overwrites completely, and creates no file.
type tearing struct {
	OS
	after, at int
	slots     []int
}

var errTorn = errors.New("torn")

func (d *tearing) Overwrite(path string, offset int64, data []byte) error {
	d.slots = append(d.slots, int(offset)/len(data))
	if d.at > 0 && len(d.slots) > d.after {
		return errors.Join(d.OS.Overwrite(path, offset, data[:d.at]), errTorn)
	}
	return d.OS.Overwrite(path, offset, data)
}

func (d *tearing) Create(path string, data []byte) error {
	if d.at > 0 {
		return errStep
	}
	return d.OS.Create(path, data)
}

// The content that Open reads is made durable before the other slot is written, because the process
// that wrote it may have been killed.
func TestFoundIsMadeDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	f := open(t, path)
	save(t, f, 1)
	save(t, f, 2)
	f.Close()
	d := &failing{}
	f = openOn(t, d, path)
	for _, at := range []string{"overwrite", "sync-folder", ""} {
		d.at, d.steps = at+" create", nil
		if err := f.Save(alone(3)); (err != nil) != (at != "") {
			t.Errorf("failing to %s: %v", at, err)
		}
		if want := map[string]string{
			"overwrite": "overwrite create", "sync-folder": "overwrite sync-folder create",
			"": "overwrite sync-folder overwrite overwrite",
		}[at]; strings.Join(d.steps, " ") != want {
			t.Errorf("failing to %s, the steps are %s", at, d.steps)
		}
	}
	d.steps = nil
	if save(t, f, 4); fmt.Sprint(d.steps) != "[overwrite overwrite]" {
		t.Errorf("the steps of the next save are %s", d.steps)
	}
}

// A new file whose name could not be made durable is not overwritten until its name is durable.
func TestNameIsMadeDurable(t *testing.T) {
	d := &failing{}
	f := openOn(t, d, filepath.Join(t.TempDir(), "mark"))
	save(t, f, 1)
	d.at = "overwrite sync-folder"
	if err := f.Save(alone(2)); !errors.Is(err, errStep) {
		t.Error(err)
	}
	d.at, d.steps = "create", nil
	if save(t, f, 3); strings.Join(d.steps, " ") != "overwrite sync-folder overwrite overwrite" {
		t.Errorf("the steps are %s", d.steps)
	}
}

// A slot is written only to an existing file, and never through a link.
func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "mark"), filepath.Join(dir, "link")
	if err := (OS{}).Overwrite(path, 0, []byte("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if err := errors.Join(os.WriteFile(path, []byte("abcdef"), 0o644), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	if err := (OS{}).Overwrite(link, 0, []byte("x")); err == nil {
		t.Error("a link is followed")
	}
	if err := (OS{}).Overwrite(path, 2, []byte("xy")); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); string(data) != "abxyef" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// A File writes nothing more once it finds what another process has written: before a save or
// during one, in either slot, or as a whole. What Open read counts as the File's.
func TestShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	begun := imageOf(t, alone(1)).saving(t, alone(2))
	begun = begun.half(t, 0, alone(3)) // killed during a save
	theirs := begun.saving(t, alone(4))
	large := begun.saving(t, alone(4))
	large, _ = large.next(writer, bytes.Repeat([]byte{'x'}, block))
	for name, c := range map[string]struct {
		file  []byte
		ok    bool
		whole bool // the other's save is complete; otherwise a write may hide it, and then the other's save fails
	}{
		"a save":               {theirs.data, false, true},
		"one slot":             {begun.half(t, 0, alone(4)).data, false, false},
		"the other slot":       {begun.half(t, 1, alone(4)).data, false, false},
		"one slot, one zero":   {append(bytes.Clone(theirs.at(0)), make([]byte, block)...), false, false},
		"larger slots":         {large.data, false, true},
		"another version":      {[]byte("flake-mark 2 1 "), false, false},
		"what was read":        {begun.data, true, true},
		"the rest of the save": {append(bytes.Clone(begun.at(0)), begun.at(0)...), true, true},
		"swapped":              {append(bytes.Clone(begun.at(1)), begun.at(0)...), true, true},
		"a damaged version":    {bytes.Replace(begun.data, []byte("mark 1"), []byte("mark 2"), 1), true, true},
	} {
		for _, at := range []string{"", "overwrite", "overwritten", "create", "rename"} {
			for _, saves := range []int{0, 1, 2} {
				write(begun.data)
				d := &between{copy: at == "create" || at == "rename"}
				f := openOn(t, d, path)
				for range saves {
					save(t, f, 5)
				}
				d.step, d.do = at, func() { write(c.file) }
				d.at("")
				err := f.Save(alone(6))
				late := at == "rename" || at == "overwrite" && !c.whole
				if errors.Is(err, ErrShared) == c.ok && !late || c.ok && err != nil {
					t.Errorf("%s, at %q, after %d saves: %v", name, at, saves, err)
				}
				if left, err := os.ReadFile(path); !c.ok && at == "" && !bytes.Equal(left, c.file) {
					t.Errorf("%s, after %d saves: the file was overwritten, %v", name, saves, err)
				}
				if err != nil {
					write(begun.data)
					if again := f.Save(alone(7)); fmt.Sprint(again) != fmt.Sprint(err) {
						t.Errorf("%s, at %q, after %d saves: the next save: %v", name, at, saves, again)
					}
				}
				f.Close()
			}
		}
	}
}

// A process that waits for the mark in the file, while another one moves it, saves nothing.
func TestSharedAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	first := openOn(t, unlocked{}, path)
	save(t, first, 1)
	second := openOn(t, unlocked{}, path)
	save(t, first, 2)
	if err := second.Save(alone(3)); !errors.Is(err, ErrShared) {
		t.Error(err)
	}
	save(t, first, 4)
	saved(t, path, 4)
}

// unlocked is a file system that ignores locks.
type unlocked struct{ OS }

func (unlocked) Lock(string) (Lock, error) { return nothing{}, nil }
