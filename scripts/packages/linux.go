package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	homepage   = "https://github.com/flake-go/flake"
	maintainer = "The flake maintainers <flake-go@users.noreply.github.com>"
	summary    = "Server of unique, time-ordered ids for Erlang, Elixir and HTTP"
)

// zipDocs writes the documents of the packages, compressed as Debian requires.
func zipDocs(r release) error {
	changes := fmt.Sprintf("flake (%s-1) unstable; urgency=medium\n\n  * Release %s: see changelog.gz.\n\n -- %s  %s\n",
		strings.Replace(r.version, "-", "~", 1), r.version, maintainer, r.time.Format(time.RFC1123Z))
	if err := os.WriteFile("changelog.Debian", []byte(changes), 0o644); err != nil {
		return err
	}
	for _, from := range []string{"source/CHANGELOG.md", "changelog.Debian", "flake.1", "NOTICE"} {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		err = create(filepath.Base(from)+".gz", func(out io.Writer) error {
			return gzipped(out, func(w io.Writer) error { _, err := w.Write(text); return err })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// linux makes a deb and an rpm package for each Linux platform, as rel/packages/nfpm.yaml says.
func linux(r release) error {
	if err := zipDocs(r); err != nil {
		return err
	}
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		variables := map[string]string{
			"arch": p.arch, "version": r.version, "maintainer": maintainer, "homepage": homepage,
		}
		config, err := nfpm.ParseFileWithEnvMapping("source/rel/packages/nfpm.yaml",
			func(name string) string { return variables[name] })
		if err != nil {
			return err
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(config, format); err != nil {
				return fmt.Errorf("%s: %w", format, err)
			}
		}
	}
	return nil
}

func (r release) pack(config nfpm.Config, format string) error {
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info.MTime = r.time
	info.RPM.Summary = summary
	if format == "deb" { // there the summary is the first line of the description
		info.Description = summary + "\n" + info.Description
	}
	return create(filepath.Join(r.out, packager.ConventionalFileName(info)),
		func(out io.Writer) error { return packager.Package(info, out) })
}
