package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A test is one of the package's tests, with the mutants that it reaches.
type test struct {
	name    string
	takes   time.Duration
	reaches map[int]bool
}

type fate int

const (
	killed fate = iota
	lived
	unreached
)

func (f fate) String() string { return [...]string{"killed", "lived", "not reached"}[f] }

var testName = regexp.MustCompile(`^(Test|Fuzz|Example)`)

// tests runs each test separately, without a mutant.
func (p *pkg) tests(ctx context.Context, log io.Writer) ([]test, error) {
	out, err := p.command(ctx, 0, "", "-test.list", ".").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: the list of tests: %w", p.rel(), err)
	}
	var tests []test
	for _, name := range strings.Fields(string(out)) {
		if !testName.MatchString(name) {
			continue
		}
		trace := filepath.Join(p.work, "trace")
		if err := os.WriteFile(trace, nil, 0o600); err != nil {
			return nil, err
		}
		begin := time.Now()
		cmd := p.command(ctx, 0, trace, "-test.timeout", "10m", "-test.run", pattern(name))
		out, err := cmd.CombinedOutput()
		endGroup(cmd)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(log, "%s: %s fails without a mutant, and is not used: %v\n%s", p.rel(), name, err, out)
			continue
		}
		t := test{name: name, takes: time.Since(begin), reaches: map[int]bool{}}
		reached, err := os.ReadFile(trace)
		if err != nil {
			return nil, err
		}
		for _, line := range strings.Fields(string(reached)) {
			n, _ := strconv.Atoi(line)
			t.reaches[n] = true
		}
		tests = append(tests, t)
	}
	slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.takes, b.takes) })
	return tests, nil
}

// command returns a command that runs the test program with one mutant. The command has its own
// process group, because tests that panic or are killed leave children.
func (p *pkg) command(ctx context.Context, n int, trace string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.program(), args...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(n), "MUTANT_TRACE="+trace, "TMPDIR="+p.work)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return endGroup(cmd) }
	cmd.WaitDelay = time.Second
	return cmd
}

// endGroup kills the processes of cmd that are left.
func endGroup(cmd *exec.Cmd) error {
	if cmd.Process == nil { // it did not start
		return nil
	}
	return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}

func pattern(name string) string { return "^" + name + "$" }

// try tries all mutants, one at a time on each processor, and returns their fates in order.
func (p *pkg) try(ctx context.Context, tests []test) []fate {
	fates := make([]fate, len(p.mutants))
	todo := make(chan int)
	var wait sync.WaitGroup
	for range runtime.NumCPU() {
		wait.Go(func() {
			for i := range todo {
				fates[i] = p.one(ctx, p.mutants[i].n, tests)
			}
		})
	}
	for i := range p.mutants {
		todo <- i
	}
	close(todo)
	wait.Wait()
	return fates
}

// one tries one mutant with the tests that reach it, the fastest first.
func (p *pkg) one(ctx context.Context, n int, tests []test) fate {
	f := unreached
	for _, t := range tests {
		if !t.reaches[n] {
			continue
		}
		if !p.passes(ctx, n, t) {
			return killed
		}
		f = lived
	}
	return f
}

// passes reports whether a test passes with a mutant, within 3 s plus five times its time without a
// mutant.
func (p *pkg) passes(ctx context.Context, n int, t test) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second+5*t.takes)
	defer cancel()
	cmd := p.command(ctx, n, "", "-test.run", pattern(t.name))
	tmp := filepath.Join(p.work, "tmp"+strconv.Itoa(n))
	os.Mkdir(tmp, 0o711) // for files left by tests that panic or are killed; without it, tests fail
	defer os.RemoveAll(tmp)
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	err := cmd.Run()
	endGroup(cmd)
	return err == nil
}
