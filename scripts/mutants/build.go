package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed hooks.go.txt
var hooks string

// A pkg is a package with all of its mutants in one test program.
type pkg struct {
	Dir, Name                                   string
	GoFiles, Imports, TestGoFiles, XTestGoFiles []string

	work    string // the directory for generated files
	root    string
	refused map[int]bool
	mutants []mutant
}

// load returns the packages that paths match, except packages without tests and packages that only
// help other packages' tests.
func load(ctx context.Context, root string, paths []string, work string) ([]*pkg, error) {
	args := append([]string{"list", "-json=Dir,Name,GoFiles,Imports,TestGoFiles,XTestGoFiles"}, paths...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %q: %w", paths, err)
	}
	var pkgs []*pkg
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		p := &pkg{root: root, refused: map[int]bool{}}
		if err := d.Decode(p); err != nil {
			return nil, err
		}
		if slices.Contains(p.Imports, "testing") || len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		p.work = filepath.Join(work, strings.ReplaceAll(p.rel(), "/", "-"))
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

// rel returns the package's directory, relative to the root.
func (p *pkg) rel() string {
	rel, _ := filepath.Rel(p.root, p.Dir) // fails only if one of them is relative
	return rel
}

func (p *pkg) program() string { return filepath.Join(p.work, "test") }

// fault matches the compiler's error for a line, and named matches the mutants that the error names.
var (
	fault = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: .*$`)
	named = regexp.MustCompile(`mutant\w+\((\d+)`)
)

// build makes the test program, without the mutants that do not compile.
func (p *pkg) build(ctx context.Context) error {
	if err := os.MkdirAll(p.work, 0o711); err != nil {
		return err
	}
	for {
		overlay, err := p.overlay()
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-gcflags=-e", "-overlay", overlay, "-o",
			p.program(), "./"+p.rel())
		cmd.Dir = p.root
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		if !p.refuse(out) {
			return fmt.Errorf("%s with mutants: %w\n%s", p.rel(), err, out)
		}
	}
}

// refuse leaves out the mutants that the compiler names, and reports whether there were any. If an
// error names only a line, refuse leaves out the mutants of the line's operators or, if there are
// none, all mutants of the line.
func (p *pkg) refuse(out []byte) bool {
	before := len(p.refused)
	lines := map[string]bool{}
	for _, f := range fault.FindAllSubmatch(out, -1) {
		numbers := named.FindAllSubmatch(f[0], -1)
		for _, n := range numbers {
			number, _ := strconv.Atoi(string(n[1]))
			p.refused[number] = true
		}
		if numbers == nil {
			lines[filepath.Base(string(f[1]))+":"+string(f[2])] = true
		}
	}
	for _, all := range []bool{false, true} {
		if all && len(p.refused) > before {
			return true
		}
		for _, m := range p.mutants {
			if (all || m.operator) && lines[filepath.Base(m.file)+":"+strconv.Itoa(m.line)] {
				p.refused[m.n] = true
			}
		}
	}
	return len(p.refused) > before
}

// overlay writes the package's files with mutants and returns the file for go's -overlay.
func (p *pkg) overlay() (string, error) {
	replace := map[string]string{}
	write := func(name string, content []byte) error {
		to := filepath.Join(p.work, name)
		replace[filepath.Join(p.Dir, name)] = to
		return os.WriteFile(to, content, 0o600)
	}
	p.mutants = nil
	next := 0
	for _, name := range p.GoFiles {
		src, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return "", err
		}
		f, err := mutate(filepath.Join(p.rel(), name), src, &next, p.refused)
		if err != nil {
			return "", err
		}
		p.mutants = append(p.mutants, f.mutants...)
		if err := write(name, f.changed()); err != nil {
			return "", err
		}
	}
	numbered(p.mutants)
	text := strings.NewReplacer("PACKAGE", p.Name, "COUNT", strconv.Itoa(next)).Replace(hooks)
	if err := write("zz_mutants.go", []byte(text)); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	overlay := filepath.Join(p.work, "overlay.json")
	return overlay, errors.Join(err, os.WriteFile(overlay, content, 0o600))
}

// numbered numbers mutants with equal keys, in source order.
func numbered(mutants []mutant) {
	seen := map[string]int{}
	for i := range mutants {
		m := &mutants[i]
		key := m.key()
		seen[key]++
		if seen[key] > 1 {
			m.change += fmt.Sprintf(" (%d)", seen[key])
		}
	}
}
