package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

const (
	homepage    = "https://github.com/flake-go/flake"
	maintainer  = "The flake maintainers <flake-go@users.noreply.github.com>"
	summary     = "Server of unique, time-ordered ids for Erlang, Elixir and HTTP"
	description = "flake hands out unique, time-ordered ids of 128, 80 or 64 bits. It is a node of\n" +
		"the Erlang distribution, which Erlang and Elixir call with gen_server:call, and\n" +
		"answers over HTTP. No id repeats, whatever kills it or sets its clock."
)

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: flake
Source: ` + homepage + `
Comment: The licenses of the Go modules in the binary are in NOTICE.gz next to this file.

Files: *
Copyright: 2026 The flake authors
License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.
`

// zipDocs writes the documents of the packages to the stage, compressed as Debian requires.
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
		err = create(filepath.Join(r.stage, filepath.Base(from)+".gz"), func(out io.Writer) error {
			return gzipped(out, func(w io.Writer) error { _, err := w.Write(text); return err })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// linux makes a deb and an rpm package for each Linux platform.
func linux(r release) error {
	if err := r.zipDocs(); err != nil {
		return err
	}
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		for _, complete := range []func(*nfpm.Info) nfpm.Packager{r.deb, r.rpm} {
			info := r.info(p)
			packager := complete(info)
			name := filepath.Join(r.out, packager.ConventionalFileName(info))
			if err := create(name, func(out io.Writer) error { return packager.Package(info, out) }); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// info describes a package of either kind. The packaging has revision 1.
func (r release) info(p platform) *nfpm.Info {
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "flake", Version: r.version, Release: "1", Arch: p.arch, Platform: p.os,
		Section: "net", Priority: "optional", License: "Apache-2.0",
		Maintainer: maintainer, Vendor: "flake", Homepage: homepage,
		Description: description, MTime: r.time,
		Overridables: nfpm.Overridables{Contents: r.contents(p)},
	})
}

// deb completes the description of a deb package.
func (r release) deb(info *nfpm.Info) nfpm.Packager {
	scripts := filepath.Join(r.root, "rel/packages/deb")
	info.Description = summary + "\n" + description
	info.Depends = []string{"adduser"}
	info.Suggests = []string{"time-daemon"}
	info.Scripts.PostInstall = filepath.Join(scripts, "postinst")
	info.Scripts.PreRemove = filepath.Join(scripts, "prerm")
	info.Scripts.PostRemove = filepath.Join(scripts, "postrm")
	info.Contents = append(info.Contents,
		r.content("man/man1/flake.1.gz", "flake.1.gz"),
		r.content("zsh/vendor-completions/_flake", "completion.zsh"),
		r.content("doc/flake/copyright", "copyright"),
		r.content("doc/flake/changelog.gz", "CHANGELOG.md.gz"),
		r.content("doc/flake/changelog.Debian.gz", "changelog.Debian.gz"),
		r.content("doc/flake/NOTICE.gz", "NOTICE.gz"),
		r.content("doc/flake/alerts.yml", filepath.Join(r.root, "rel/files/alerts.yml")),
		r.content("doc/flake/grafana.json", filepath.Join(r.root, "rel/files/grafana.json")),
		r.content("doc/flake/ids.sql", filepath.Join(r.root, "rel/files/ids.sql")),
		r.content("lintian/overrides/flake", filepath.Join(scripts, "lintian-overrides")))
	return deb.Default
}

// rpm completes the description of an rpm package.
func (r release) rpm(info *nfpm.Info) nfpm.Packager {
	scripts := filepath.Join(r.root, "rel/packages/rpm")
	info.Depends = []string{"/usr/bin/getent", "/usr/sbin/groupadd", "/usr/sbin/useradd"}
	info.Scripts.PreInstall = filepath.Join(scripts, "pre")
	info.Scripts.PostInstall = filepath.Join(scripts, "post")
	info.Scripts.PreRemove = filepath.Join(scripts, "preun")
	info.Scripts.PostRemove = filepath.Join(scripts, "postun")
	info.RPM = nfpm.RPM{Summary: summary, Group: "System Environment/Daemons", BuildHost: "localhost"}
	for _, dir := range []string{"/etc/flake", "/usr/share/doc/flake", "/usr/share/licenses/flake"} {
		info.Contents = append(info.Contents, &files.Content{Destination: dir, Type: files.TypeDir})
	}
	add := func(kind, to, from string) {
		c := r.content(to, from)
		c.Type = kind
		info.Contents = append(info.Contents, c)
	}
	add(files.TypeRPMLicense, "licenses/flake/LICENSE", filepath.Join(r.root, "LICENSE"))
	add(files.TypeRPMLicense, "licenses/flake/NOTICE", "NOTICE")
	add(files.TypeRPMDoc, "doc/flake/CHANGELOG.md", filepath.Join(r.root, "CHANGELOG.md"))
	add(files.TypeRPMDoc, "doc/flake/alerts.yml", filepath.Join(r.root, "rel/files/alerts.yml"))
	add(files.TypeRPMDoc, "doc/flake/grafana.json", filepath.Join(r.root, "rel/files/grafana.json"))
	add(files.TypeRPMDoc, "doc/flake/ids.sql", filepath.Join(r.root, "rel/files/ids.sql"))
	add(files.TypeRPMDoc, "man/man1/flake.1.gz", "flake.1.gz")
	add(files.TypeFile, "zsh/site-functions/_flake", "completion.zsh")
	return rpm.DefaultRPM
}

// contents returns the files that deb and rpm packages have in the same places.
func (r release) contents(p platform) files.Contents {
	config := r.content("/etc/flake/sys.toml", filepath.Join(r.root, "rel/packages/sys.toml"))
	config.Type = files.TypeConfigNoReplace
	command := r.content("/usr/bin/flake", r.binary(p))
	command.FileInfo.Mode = 0o755
	return files.Contents{
		config, command,
		r.content("/usr/lib/systemd/system/flake.service", filepath.Join(r.root, "rel/systemd/flake.service")),
		r.content("bash-completion/completions/flake", "completion.bash"),
		r.content("fish/vendor_completions.d/flake.fish", "completion.fish"),
	}
}

// content returns a file at path to, with the bytes of the file at path from. A relative to is below
// /usr/share, and a relative from is below the stage.
func (r release) content(to, from string) *files.Content {
	if !filepath.IsAbs(to) {
		to = "/usr/share/" + to
	}
	if !filepath.IsAbs(from) {
		from = filepath.Join(r.stage, from)
	}
	return &files.Content{
		Source: from, Destination: to,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o644, MTime: r.time},
	}
}
