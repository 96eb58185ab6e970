package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

const (
	homepage    = "https://github.com/flake-go/flake"
	maintainer  = "The flake maintainers <flake-go@users.noreply.github.com>"
	summary     = "server of unique, time-ordered ids for Erlang, Elixir and HTTP"
	description = "flake hands out unique, time-ordered ids of 128, 80 or 64 bits. It is a node of\n" +
		"the Erlang distribution, which Erlang and Elixir call with gen_server:call, and\n" +
		"answers over HTTP. No id comes twice, whatever kills it or sets its clock."
)

// linux makes a deb and an rpm package for each Linux.
func linux(r release) error {
	if err := r.zipDocs(); err != nil {
		return err
	}
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		for _, packager := range []nfpm.Packager{deb.Default, rpm.DefaultRPM} {
			info := nfpm.WithDefaults(r.info(p, packager == nfpm.Packager(deb.Default)))
			name := filepath.Join(r.out, packager.ConventionalFileName(info))
			if err := writePackage(name, packager, info); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func writePackage(name string, packager nfpm.Packager, info *nfpm.Info) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	err = packager.Package(info, out)
	return cmp.Or(err, out.Close())
}

// info describes a package. Its version has a revision, 1, of the packaging.
func (r release) info(p platform, isDeb bool) *nfpm.Info {
	info := &nfpm.Info{
		Name: "flake", Version: r.version, Release: "1", Arch: p.arch, Platform: p.os,
		Section: "net", Priority: "optional", License: "Apache-2.0",
		Maintainer: maintainer, Vendor: "flake", Homepage: homepage,
		Description: summary + "\n" + description, MTime: r.time,
	}
	scripts := filepath.Join(r.root, "rel/packages")
	info.Contents = r.contents(p)
	if isDeb {
		info.Depends = []string{"adduser"}
		info.Suggests = []string{"time-daemon"}
		info.Scripts.PostInstall = filepath.Join(scripts, "deb/postinst")
		info.Scripts.PreRemove = filepath.Join(scripts, "deb/prerm")
		info.Scripts.PostRemove = filepath.Join(scripts, "deb/postrm")
		info.Deb.Compression = "xz"
		info.Contents = append(info.Contents,
			r.content("zsh/vendor-completions/_flake", "completion.zsh"),
			r.content("doc/flake/copyright", "copyright"),
			r.content("doc/flake/changelog.gz", "CHANGELOG.md.gz"),
			r.content("doc/flake/changelog.Debian.gz", "changelog.Debian.gz"),
			r.content("doc/flake/NOTICE.gz", "NOTICE.gz"),
			r.content("lintian/overrides/flake", filepath.Join(scripts, "deb/lintian-overrides")))
		return info
	}
	info.Depends = []string{"/usr/bin/getent", "/usr/sbin/groupadd", "/usr/sbin/useradd"}
	info.Scripts.PreInstall = filepath.Join(scripts, "rpm/pre")
	info.Scripts.PostInstall = filepath.Join(scripts, "rpm/post")
	info.Scripts.PreRemove = filepath.Join(scripts, "rpm/preun")
	info.Scripts.PostRemove = filepath.Join(scripts, "rpm/postun")
	info.RPM = nfpm.RPM{Summary: summary, Group: "System Environment/Daemons", BuildHost: "localhost", Compression: "xz"}
	license := r.content("licenses/flake/LICENSE", filepath.Join(r.root, "LICENSE"))
	license.Type = files.TypeRPMLicense
	notice := r.content("licenses/flake/NOTICE", "NOTICE")
	notice.Type = files.TypeRPMLicense
	changes := r.content("doc/flake/CHANGELOG.md", filepath.Join(r.root, "CHANGELOG.md"))
	changes.Type = files.TypeRPMDoc
	info.Contents = append(info.Contents, license, notice, changes,
		r.content("zsh/site-functions/_flake", "completion.zsh"))
	return info
}

// contents returns what both kinds of packages hold at the same place.
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
		r.content("man/man1/flake.1.gz", "flake.1.gz"),
	}
}

// content returns a file at to, below /usr/share if that is relative, whose bytes are
// in from, below the stage if that is.
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
