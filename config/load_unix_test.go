//go:build unix

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Files that are too long or not regular are refused, and do not make the node wait.
func TestLoadRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	long := write(t, strings.Repeat("#", maxFile+1))
	for path, want := range map[string]string{
		pipe:        "cannot be read: not a regular file",
		link:        "cannot be read: not a regular file",
		dir:         "cannot be read: not a regular file",
		"/dev/zero": "cannot be read: not a regular file",
		long:        "the file is 1048577 bytes long; the limit is 1048576",
	} {
		if _, err := Load(path); err == nil || err.Error() != path+": "+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := Load(write(t, strings.Repeat("#", maxFile))); err != nil {
		t.Error(err)
	}
}

// Loading a file takes limited work, whatever the file contains. Work is measured as memory
// allocated.
func TestLoadIsBounded(t *testing.T) {
	const deep = "tables or arrays nested deeper than 8: no key is that deep"
	many := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("log.key%d = 1\n", i)
		}
		return text
	}
	for name, tt := range map[string]struct{ text, want string }{
		"dots":            {strings.Repeat("a.", 1<<12) + "a = 1", deep},
		"dots and spaces": {strings.Repeat("a\t. ", 1<<12) + "a = 1", deep},
		"quoted":          {strings.Repeat(`"a".'a'.`, 1<<11) + "a = 1", deep},
		"a header":        {"[" + strings.Repeat("a.", 1<<12) + "a]\n", deep},
		"tables":          {"a = " + strings.Repeat("{a = ", 1<<11) + "1" + strings.Repeat("}", 1<<11), deep},
		"arrays":          {"a = " + strings.Repeat("[\n", 1<<16), deep},
		"after a string":  {`a = {b = """\"""x"""", ` + strings.Repeat("a.", 1<<12) + `a = """"x"""}`, deep},
		"after another":   {`a = {b = '''x'''', ` + strings.Repeat("a.", 1<<12) + `a = ''''x'''}`, deep},
		"many keys":       {many(maxValues + 1), "2049 keys; the limit is 2048"},
		"unknown keys":    {many(maxValues), "log.key1: unknown, the nearest known is"},
		"a long key":      {strings.Repeat("a", 1<<19) + " = 1", strings.Repeat("a", maxKey) + "...: unknown"},
		"a shorter key":   {strings.Repeat("a", maxKey) + " = 1", strings.Repeat("a", maxKey) + ": unknown"},
		"at the limit":    {strings.Repeat("a.", 8) + "a = [[[[[[[[1]]]]]]]]", "a: unknown"},
		"generators":      {strings.Repeat("[[generator]]\n", 65), ":1: generator: 65 tables; the limit is 64"},
		"one fewer":       {strings.Repeat("[[generator]]\n", 64), ":64: generator[64].name"},
		"no such table":   {"'generator[0].format' = 1\n'generator[65].format' = 1", "generator[65].format: unknown"},
		"a dot in a key":  {"[[generator]]\n'a.b' = 1", "generator[1].a.b: unknown"},
		"dots in strings": {"# ........ [[[[[[[[[\n[log]\nlevel = \"[[[[[[[[[ \\\" ..........\"", "log.level"},
	} {
		path := write(t, tt.text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Load(path)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %.300v, want %s", name, err, tt.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: Load allocated %d bytes, want at most 64 MiB", name, took)
		}
	}
}
