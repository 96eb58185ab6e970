package mark

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Open on a Shadow refuses what Open refuses, and leaves nothing behind.
func TestShadow(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	folder := func(name string, mode fs.FileMode) {
		t.Helper()
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700),
			os.Chmod(filepath.Join(dir, name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("foreign", "not a mark\n", 0o600)
	write("read-only", string(fileOf(t, 1)), 0o400)
	write("good", string(fileOf(t, 1)), 0o600)
	folder("everybody's", 0o777)
	folder("another's", 0o500)
	for name, fault := range map[string]string{
		"new":              "",
		"good":             "",
		"foreign":          "it was left unchanged",
		"read-only":        "it is read-only",
		"none/new":         "create the directory, or set another path",
		"everybody's/new":  "its directory is world-writable",
		"everybody's":      "it is a directory",
		"foreign/new":      "not a directory",
		"another's/../new": "",
	} {
		path := filepath.Join(dir, name)
		_, _, got := Open(&Shadow{}, path)
		if made, err := filepath.Glob(path + ".*"); err != nil || len(made) > 0 {
			t.Errorf("%s: %v was made, %v", name, made, err)
		}
		file, _, want := Open(OS{}, path)
		if want == nil {
			file.Close()
			os.Remove(path + ".lock")
		}
		if (got == nil) != (fault == "") || got != nil && (!strings.Contains(got.Error(), fault) || want == nil) {
			t.Errorf("%s: on a Shadow %v, Open %v, want %q", name, got, want, fault)
		}
	}
	if os.Getuid() != 0 { // root may write anywhere
		if _, _, err := Open(&Shadow{}, filepath.Join(dir, "another's", "new")); !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
	}
}

// A locked file is not an error, and links are followed.
func TestShadowOfLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	file, _, err := Open(OS{}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	link := path + ".link"
	if err := errors.Join(file.Save(alone(1)), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	if shadow, c, err := Open(&Shadow{}, link); err != nil || shadow.Path() != file.Path() || c.Marks[""].Milli != 1 {
		t.Error(c, err)
	}
}

// A Shadow keeps what it has read or written, whatever is then written to the disk.
func TestShadowKeeps(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "mark"), filepath.Join(dir, "other")
	d := &Shadow{}
	read := func(path, want string) {
		t.Helper()
		data, err := d.Read(path, maxSize)
		if string(data) != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v, want %q", path, data, err, want)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, "abcdef")
	read(path, "abcdef")
	read(other, "")
	write(path, "later")
	write(other, "later")
	read(path, "abcdef")
	read(other, "")
	if err := d.Overwrite(path, 1, []byte("xy")); err != nil {
		t.Error(err)
	}
	read(path, "axydef")
	if err := d.Create(path+".new", []byte("new")); err != nil {
		t.Fatal(err)
	}
	read(path+".new", "new")
	if err := d.Rename(path+".new", other); err != nil {
		t.Error(err)
	}
	read(other, "new")
	read(path, "axydef")
}

// On an empty Shadow every directory exists, but no file. Nothing is written.
func TestShadowEmpty(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "none", "mark")
	file, c, err := Open(&Shadow{Empty: true}, path)
	if err != nil || len(c.Marks) > 0 || file.Path() != path {
		t.Fatal(c, err)
	}
	if err := errors.Join(file.Save(alone(1)), file.Save(alone(2)), file.Close()); err != nil {
		t.Error(err)
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Error(made, err)
	}
}
