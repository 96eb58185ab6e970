package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// run lists the mutants that the sample's tests do not notice, and accepts them once survivors.txt
// names them with a reason. It kills the child of a test that panicked.
func TestRun(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.26\n",
		"s.go": `package sample

type counter struct{ n, last int }

const none = "no" + "ne"

func (c *counter) add(n int, name string) string {
	if n > 0 && n < 10 {
		c.n += n
		c.last = n
	}
	return name + none
}

func never(a, b int) bool { return a == b }
`,
		"s_test.go": `package sample

import (
	"os"
	"os/exec"
	"testing"
)

func TestAdd(t *testing.T) {
	var c counter
	c.add(9, "")
	c.add(0, "")
	if c.add(-1, ""); c.n != 9 {
		child := exec.Command("sleep", "1000")
		left, _ := os.OpenFile(os.Getenv("LEFT"), os.O_WRONLY, 0)
		left.WriteString("left")
		child.Stdout = left
		child.Start()
		panic(c)
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := filepath.Join(t.TempDir(), "left")
	if err := syscall.Mkfifo(left, 0o600); err != nil {
		t.Fatal(err)
	}
	children, err := os.OpenFile(left, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer children.Close()
	t.Setenv("LEFT", left)
	t.Chdir(root)
	var out strings.Builder
	err = run(t.Context(), &out, []string{"."}, "survivors.txt")
	if err == nil || !strings.HasPrefix(err.Error(), "5 lived") {
		t.Error(err)
	}
	if output, err := io.ReadAll(children); len(output) == 0 || err != nil { // until no child can write
		t.Errorf("%q, %v", output, err)
	}
	want := `s.go:8: lived: s.go counter.add: n > 0 && n < 10: without n < 10
s.go:8: lived: s.go counter.add: n > 0: >=
s.go:8: not reached: s.go counter.add: n < 10: <=
s.go:10: lived: s.go counter.add: c.last = n: left out
s.go:15: not reached: s.go never: a == b: not
`
	if got := out.String(); !strings.HasPrefix(got, want+".: ") {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	var known strings.Builder
	for line := range strings.Lines(want) {
		key := strings.SplitN(strings.TrimSpace(line), ": ", 3)[2]
		known.WriteString(key + "\tno reason\n")
	}
	os.WriteFile("survivors.txt", []byte(known.String()), 0o600)
	if err := run(t.Context(), io.Discard, []string{"."}, "survivors.txt"); err != nil {
		t.Error(err)
	}
	os.WriteFile("survivors.txt", []byte("s.go: without a reason\n"), 0o600)
	if err := run(t.Context(), io.Discard, []string{"."}, "survivors.txt"); err == nil {
		t.Error("a survivor without a reason was accepted")
	}
}
