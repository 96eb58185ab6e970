// Mutants changes the code of packages in small ways, one at a time, and reports the changes
// that a package's own tests do not notice:
//
//	scripts/mutants/run                       # all maintained packages
//	scripts/mutants/run ./flake/sno ./client  # some packages
//
// A change is called a mutant. It leaves out a statement or a side of && or ||; makes a condition
// false or true; turns == into !=, < into <=, + into -, and so on. All mutants of a package are
// compiled into one test program, each behind a switch, so trying a mutant only runs the tests that
// reach it. A test reaches a mutant only where the mutant can make a difference: for example, a <
// that became <= only if its sides are equal. A mutant that makes a test hang counts as killed.
//
// On two cores a package takes from 10 s to 10 minutes, the longest where mutants hang or tests are slow.
//
// Mutants that live are compared with survivors.txt, which names each survivor and the reason why
// tests cannot notice it, or need not. A survivor that the file does not name is a failure. If a
// mutant that the file names is killed or no longer exists, its name is printed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// maintained lists the packages that a run without arguments changes.
var maintained = []string{"./flake/...", "./genserver", "./node/distribution", "./node/etf", "./node/handshake",
	"./node/socket", "./node/wire", "./client/...", "./idserver/inspect", "./rel/flake/original", "./config"}

func main() {
	log.SetFlags(0)
	log.SetPrefix("mutants: ")
	reviewed := flag.String("reviewed", "", "the `file` of mutants that may live")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	paths := flag.Args()
	if len(paths) == 0 {
		paths = maintained
	}
	if err := run(ctx, os.Stdout, paths, *reviewed); err != nil {
		stop()
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, paths []string, reviewed string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	known, err := read(reviewed)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o711); err != nil { // PostgreSQL does not run as root
		return err
	}
	tree := filepath.Join(work, "tree") // a copy, because mutants may write files anywhere
	if err := os.CopyFS(tree, os.DirFS(root)); err != nil {
		return err
	}
	pkgs, err := load(ctx, tree, paths, work)
	if err != nil {
		return err
	}
	fresh := 0
	for _, p := range pkgs {
		n, err := p.measure(ctx, out, known)
		if err != nil {
			return err
		}
		fresh += n
	}
	if fresh > 0 {
		return fmt.Errorf("%d lived and are not in %s: write tests that notice them, or add them there with a reason",
			fresh, reviewed)
	}
	return nil
}

// measure tries a package's mutants and returns how many lived that are not known.
func (p *pkg) measure(ctx context.Context, out io.Writer, known map[string]bool) (fresh int, err error) {
	begin := time.Now()
	if err := p.build(ctx); err != nil {
		return 0, err
	}
	tests, err := p.tests(ctx, out)
	if err != nil {
		return 0, err
	}
	fates := p.try(ctx, tests)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	var count [unreached + 1]int
	for i, m := range p.mutants {
		f := fates[i]
		count[f]++
		named := known[m.key()]
		delete(known, m.key())
		switch {
		case f == killed && named:
			fmt.Fprintf(out, "named, but killed now: %s\n", m.key())
		case f != killed && !named:
			fresh++
			fmt.Fprintf(out, "%s:%d: %s: %s\n", m.file, m.line, f, m.key())
		}
	}
	for key := range known {
		if name, _, _ := strings.Cut(key, " "); filepath.Dir(name) == p.rel() {
			fmt.Fprintf(out, "named, but no mutant now: %s\n", key)
		}
	}
	total := max(1, len(p.mutants))
	fmt.Fprintf(out, "%s: %d mutants, %d killed, %d lived, %d not reached: %.1f %% killed, in %.0f s\n",
		p.rel(), len(p.mutants), count[killed], count[lived], count[unreached],
		100*float64(count[killed])/float64(total), time.Since(begin).Seconds())
	return fresh, nil
}

// read reads the keys of the known survivors: one per line, followed by a tab and the reason. A
// line that begins with # is a comment.
func read(name string) (known map[string]bool, err error) {
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known = map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		key, reason, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		if reason == "" {
			return nil, fmt.Errorf("%s:%d: no reason after a tab", name, i+1)
		}
		known[key] = true
	}
	return known, nil
}
