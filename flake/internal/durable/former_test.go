package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// A generator that had a separate file begins after the mark in it. Once the common file has the
// generator's mark, the separate file is ignored.
func TestFormerFiles(t *testing.T) {
	b := newBench(t)
	path := b.path
	former := map[string]uint64{"": someTime + 1000, "-orders": someTime + 2000, "-items": someTime + 10_000}
	for name, milli := range former {
		put(t, path+name, alone(milli))
	}
	m := b.marks(t, mark.OS{})
	for _, name := range []string{"", "orders"} {
		d := b.openIn(t, m, name)
		if id := d.next(t); id.milli <= former[strings.TrimSuffix("-"+name, "-")] {
			t.Errorf("%q: %v", name, id)
		}
	}
	if _, err := b.tryIn(t, m, "items"); !errors.Is(err, tick.ErrClockBackwards) ||
		!strings.Contains(err.Error(), path+"-items") {
		t.Errorf("the clock is behind: %v", err)
	}
	b.openIn(t, m, "fresh")
	if got := b.inFile(t); !slices.Equal(got, []string{"", "fresh", "orders"}) {
		t.Errorf("%q", got)
	}
	// An earlier release does not read the file, and so does not start.
	if data, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(data), "flake-mark 4 ") {
		t.Errorf("%q, %v", data, err)
	}
	for name, milli := range former {
		if b.path = path + name; name != "" && b.saved(t) != milli {
			t.Errorf("%s has %d, want %d", b.path, b.saved(t), milli)
		}
	}
	put(t, path+"-orders", alone(1)) // fails if the file is locked
	if err := os.WriteFile(path+"-orders", []byte("no mark"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.path = path
	b.clock.Add(5000)
	m.Close()
	b.clock.Add(1)
	m = b.marks(t, mark.OS{})
	b.openIn(t, m, "orders").next(t)
	m.Close()
	b.clock.Store(someTime)
	if _, err := b.tryIn(t, b.marks(t, mark.OS{}), "orders"); !errors.Is(err, tick.ErrClockBackwards) ||
		!strings.Contains(err.Error(), path+" (orders)") {
		t.Errorf("the clock is behind the file: %v", err)
	}
}

// The file of a running generator of an earlier release is not taken over.
func TestFormerFileInUse(t *testing.T) {
	b := newBench(t)
	path := b.path
	b.path += "-orders"
	old := b.open(t)
	old.next(t)
	b.path = path
	m := b.marks(t, mark.OS{})
	b.clock.Add(2 * window)
	if _, err := b.tryIn(t, m, "orders"); !errors.Is(err, mark.ErrLocked) ||
		!strings.Contains(err.Error(), path+"-orders") {
		t.Errorf("while the old generator runs: %v", err)
	}
	if err := old.Renew(); err != nil {
		t.Error(err)
	}
	last := old.next(t)
	kill(old)
	if id := b.openIn(t, m, "orders").next(t); !id.after(last) {
		t.Errorf("%v after %v", id, last)
	}
	if err := old.Renew(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the old generator continues: %v", err)
	}
}

// An existing file is never ignored. If it may belong to another generator, it is refused, and
// stays.
func TestNeverAnew(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]mark.Content // by suffix of the path
		alone bool                    // without Marks; otherwise its name is orders
		says  string
	}{
		"alone, in a file with names":           {map[string]mark.Content{"": named("a", 1)}, true, "only marks with names"},
		"a name, in a file whose mark has none": {map[string]mark.Content{"": alone(1)}, false, "without a name"},
		"a separate file with another name": {
			map[string]mark.Content{"-orders": named("orders", 1)}, false, "of several"},
		"a separate file with several marks": {
			map[string]mark.Content{"-orders": {Marks: map[string]mark.Mark{"": markAt(1), "a": markAt(1)}}}, false,
			"of several"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			at := b.path
			for behind, marks := range c.files {
				put(t, b.path+behind, marks)
				at = b.path + behind
			}
			if len(c.files["-orders"].Marks) > 0 {
				at = b.path + "-orders"
			}
			content := func() string {
				one, _ := os.ReadFile(b.path)
				other, _ := os.ReadFile(b.path + "-orders")
				return string(one) + string(other)
			}
			before := content()
			for range 2 { // the first attempt must not leave a lock, or a name in use
				var err error
				if c.alone {
					_, err = b.try(t.Context())
				} else {
					m := b.marks(t, mark.OS{})
					_, err = b.tryIn(t, m, "orders")
					if _, again := b.tryIn(t, m, "orders"); fmt.Sprint(err) != fmt.Sprint(again) {
						t.Errorf("the next attempt returned %v, want %v", again, err)
					}
					m.Close()
				}
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), at+":") {
					t.Errorf("%v\ndoes not say %q about %s", err, c.says, at)
				}
			}
			if after := content(); after != before {
				t.Errorf("the files have %q, want %q", after, before)
			}
		})
	}
	for name, make := range map[string]func(path string) error{
		"no mark":         func(path string) error { return os.WriteFile(path, []byte("no mark"), 0o644) },
		"a dangling link": func(path string) error { return os.Symlink(path+".none", path) },
		"a directory as the lock": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("x"), 0o644), os.Mkdir(path+".lock", 0o755))
		},
	} {
		b := newBench(t)
		if err := make(b.path + "-orders"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.tryIn(t, b.marks(t, mark.OS{}), "orders"); err == nil ||
			!strings.Contains(err.Error(), b.path+"-orders") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A path stays the same if the working directory changes.
func TestFormerFileElsewhere(t *testing.T) {
	b := newBench(t)
	put(t, b.path+"-orders", alone(someTime+1000))
	t.Chdir(filepath.Dir(b.path))
	m, err := OpenMarksOn(mark.OS{}, b.sleep, filepath.Base(b.path), nil, linger)
	if err != nil {
		t.Fatal(err)
	}
	defer m.file.Close()
	t.Chdir(t.TempDir())
	if id := b.openIn(t, m, "orders").next(t); id.milli <= someTime+1000 {
		t.Error(id)
	}
}
