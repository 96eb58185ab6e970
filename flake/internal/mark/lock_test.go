//go:build unix

package mark

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// If the lock file is removed, the lock is taken again, unless another process was first.
func TestLockIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	f := open(t, path)
	save(t, f, 1000)
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	save(t, f, 2000)
	if _, _, err := Open(OS{}, path); !errors.Is(err, ErrLocked) {
		t.Fatalf("opened twice: %v", err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	other := open(t, path)
	if err := os.WriteFile(path+".new", []byte("the other's"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(alone(3000)); !errors.Is(err, ErrLocked) {
		t.Errorf("saved without the lock: %v", err)
	}
	if data, err := os.ReadFile(path + ".new"); string(data) != "the other's" {
		t.Errorf("the other's temporary file has %q, %v", data, err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	save(t, other, 4000)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the mark may be behind the other's ids
		if err := f.Save(alone(3000)); !errors.Is(err, ErrShared) {
			t.Errorf("saved over the other's mark: %v", err)
		}
	}
	saved(t, path, 4000)
}

// between is a disk that calls do once, when a save reaches the step.
type between struct {
	OS
	step string
	do   func()
	copy bool // copy on write: nothing can be overwritten
}

func (d *between) at(step string) {
	if do := d.do; step == d.step && do != nil {
		d.do = nil
		do()
	}
}

func (d *between) Overwrite(path string, offset int64, data []byte) error {
	if d.copy {
		return errStep
	}
	d.at("overwrite")
	defer d.at("overwritten")
	return d.OS.Overwrite(path, offset, data)
}

func (d *between) Create(path string, data []byte) error {
	d.at("create")
	return d.OS.Create(path, data)
}

func (d *between) Rename(from, to string) error {
	d.at("rename")
	return d.OS.Rename(from, to)
}

func (d *between) SyncDir(path string) error {
	d.at("sync folder")
	return d.OS.SyncDir(path)
}

// If the lock file is removed during a save and another process reads the old mark, the save
// fails; otherwise both processes would use the same times.
func TestLockIsLostInASave(t *testing.T) {
	for _, step := range []string{"overwrite", "create", "rename", "sync folder"} {
		for _, ends := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "mark")
			d := &between{step: step, copy: step != "overwrite"}
			f, _, err := Open(d, path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			save(t, f, 1000)
			d.do = func() {
				if err := os.Remove(path + ".lock"); err != nil {
					t.Fatal(err)
				}
				other, c, err := Open(OS{}, path)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { other.Close() })
				if c.Marks[""].Milli == 1000 {
					save(t, other, 3000)
				}
				if ends {
					other.Close()
				}
			}
			for range 2 {
				if err := f.Save(alone(2000)); err == nil {
					t.Errorf("saved, although another process ran before %s; it had ended: %v", step, ends)
				}
			}
			data, err := os.ReadFile(path)
			if c, _ := Parse(data); step == "create" && c.Marks[""].Milli != 3000 {
				t.Errorf("the other's mark was replaced by %v, %v", c, err)
			}
		}
	}
}

// If the system call fails, so does flock.
func TestLockThatFails(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := flock(f); !errors.Is(err, syscall.EBADF) {
		t.Error(err)
	}
}

// Programs that clean /tmp remove old files, so a save updates the times of the lock file.
func TestLockIsKeptYoung(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	f := open(t, path)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path+".lock", old, old); err != nil {
		t.Fatal(err)
	}
	save(t, f, 1000)
	if info, err := os.Stat(path + ".lock"); err != nil || !info.ModTime().After(old.Add(time.Minute)) {
		t.Errorf("%v, %v", info, err)
	}
}

// Keep fails if the lock file is closed, or if its directory is gone.
func TestLockThatIsClosed(t *testing.T) {
	lock, err := OS{}.Lock(filepath.Join(t.TempDir(), "mark.lock"))
	if err == nil {
		err = lock.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if again, err := lock.Keep(); again || err == nil {
		t.Errorf("Keep of a closed lock: %v, %v", again, err)
	}
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if lock, err = (OS{}).Lock(filepath.Join(dir, "mark.lock")); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if again, err := lock.Keep(); again || err == nil {
		t.Errorf("Keep without the directory: %v, %v", again, err)
	}
}

// unread is a disk that fails to read files while err is set. It is also its own lock: the next
// Keep returns the value of again.
type unread struct {
	OS
	again bool
	err   error
}

func (d *unread) Lock(string) (Lock, error) { return d, nil }
func (d *unread) Close() error              { return nil }

func (d *unread) Keep() (again bool, err error) {
	again, d.again = d.again, false
	return again, nil
}

func (d *unread) Read(path string, max int64) ([]byte, error) {
	if d.err != nil {
		return nil, d.err
	}
	return d.OS.Read(path, max)
}

// After the lock was taken again, a save fails if the file cannot be read, because another process
// may have written it. A missing file is not an error.
func TestLockTakenAgain(t *testing.T) {
	d := &unread{}
	f, _, err := Open(d, filepath.Join(t.TempDir(), "mark"))
	if err != nil {
		t.Fatal(err)
	}
	save(t, f, 1000)
	d.err = errStep
	for _, d.again = range []bool{true, false} {
		if err := f.Save(alone(2000)); !errors.Is(err, errStep) {
			t.Errorf("saved over a file that cannot be read: %v", err)
		}
	}
	d.again, d.err = true, nil
	if err := os.Remove(f.Path()); err != nil {
		t.Fatal(err)
	}
	save(t, f, 3000)
	d.err = errStep // no other process can have written
	save(t, f, 4000)
	if err := os.MkdirAll(filepath.Join(f.Path()+".new", "theirs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(alone(5000)); !errors.Is(err, errStep) {
		t.Errorf("no new file can be written either: %v", err)
	}
}

// While another process holds the lock, nothing is written, even if the content needs a new file. Once
// the lock is free, the next save succeeds.
func TestLockIsHeldByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	f := open(t, path)
	save(t, f, 1)
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	other, err := OS{}.Lock(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Save(large(1)); !errors.Is(err, ErrLocked) {
		t.Errorf("saved while another holds the lock: %v", err)
	}
	saved(t, path, 1)
	if err := errors.Join(other.Close(), f.Save(large(1))); err != nil {
		t.Errorf("once the lock is free: %v", err)
	}
}
