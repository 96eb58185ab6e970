package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// notice writes the licenses of the code in the binaries: those of Go and of the modules.
func notice(r release) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "flake contains the following, under these licenses.\n")
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	if err := appendLicenses(&text, "Go's standard library, https://go.dev", strings.TrimSpace(string(root))); err != nil {
		return err
	}
	built, err := buildinfo.ReadFile(r.platforms[0].binary())
	if err != nil {
		return err
	}
	for _, m := range built.Deps {
		list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.Path)
		list.Dir = "source"
		dir, err := list.Output()
		if err != nil {
			return fmt.Errorf("%v: %w", list, err)
		}
		if err := appendLicenses(&text, m.Path+" "+m.Version, strings.TrimSpace(string(dir))); err != nil {
			return err
		}
	}
	return os.WriteFile("NOTICE", text.Bytes(), 0o644)
}

// appendLicenses appends the licenses in a module's directory.
func appendLicenses(to *bytes.Buffer, name, dir string) error {
	var found []string
	for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "NOTICE*", "PATENTS"} {
		names, _ := filepath.Glob(filepath.Join(dir, pattern)) // fails only for a bad pattern
		found = append(found, names...)
	}
	if len(found) == 0 {
		return fmt.Errorf("%s has no license in %q", name, dir)
	}
	fmt.Fprintf(to, "\n%s\n%s\n", name, strings.Repeat("=", len(name)))
	for _, f := range found {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "\n%s\n", bytes.TrimSpace(text))
	}
	return nil
}
