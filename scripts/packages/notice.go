package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// notice writes the licenses of what the binaries are built of: that of Go, and those of
// the modules.
func notice(r release) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "flake is built of what follows, under these licenses.\n")
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	if err := appendLicenses(&text, "Go's standard library, https://go.dev", strings.TrimSpace(string(root))); err != nil {
		return err
	}
	built, err := buildinfo.ReadFile(r.binary(r.platforms[0]))
	if err != nil {
		return err
	}
	for _, m := range built.Deps {
		list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.Path)
		list.Dir = r.root
		dir, err := list.Output()
		if err != nil {
			return fmt.Errorf("%v: %w", list, err)
		}
		if err := appendLicenses(&text, m.Path+" "+m.Version, strings.TrimSpace(string(dir))); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.stage, "NOTICE"), text.Bytes(), 0o644)
}

// appendLicenses appends the licenses in a module's folder.
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

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: flake
Source: ` + homepage + `
Comment: The licenses of the Go modules in the binary are in NOTICE.gz beside this file.

Files: *
Copyright: 2026 The flake authors
License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.
`

// zipDocs writes to the stage what the packages document, compressed as they want it.
func (r release) zipDocs() error {
	changes := fmt.Sprintf("flake (%s-1) unstable; urgency=medium\n\n  * Release %s: see changelog.gz.\n\n -- %s  %s\n",
		strings.Replace(r.version, "-", "~", 1), r.version, maintainer, r.time.Format(time.RFC1123Z))
	if err := os.WriteFile(filepath.Join(r.stage, "changelog.Debian"), []byte(changes), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.stage, "copyright"), []byte(copyright), 0o644); err != nil {
		return err
	}
	for _, from := range []string{
		filepath.Join(r.root, "CHANGELOG.md"), filepath.Join(r.stage, "changelog.Debian"),
		filepath.Join(r.stage, "flake.1"), filepath.Join(r.stage, "NOTICE"),
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if text, err = compressed(text); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.stage, filepath.Base(from)+".gz"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compressed returns a text compressed, without a name or a time.
func compressed(text []byte) ([]byte, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = cmp.Or(err, w.Close())
	return zipped.Bytes(), err
}
