// Command packages makes the packages of a release: archives, deb and rpm packages, bills of
// materials, a container image, a chart for Kubernetes, and a client library for npm.
// scripts/release builds their contents in a directory, and runs this command there. The directory
// contains the source, in source, and what was built: GOOS-GOARCH/flake, flake.1 and
// completion.SHELL. The same input makes the same bytes.
package main

import (
	"flag"
	"fmt"
	"log"
	"strings"
	"time"
)

// A release holds the inputs of all packages of one version.
type release struct {
	version string    // such as 1.2.3, without a v
	commit  string    // the commit of the source
	time    time.Time // the time of the commit, and of every file in a package
	out     string    // the directory of the packages

	platforms []platform // the platforms of the binaries
}

// A platform is the system that a binary runs on, under Go's names.
type platform struct{ os, arch string }

// binary returns the path of the command for a platform.
func (p platform) binary() string { return p.os + "-" + p.arch + "/flake" }

// name returns the base name of the files for a platform.
func (r release) name(p platform) string {
	return fmt.Sprintf("flake-%s-%s-%s", r.version, p.os, p.arch)
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("packages: ")
	var r release
	seconds := flag.Int64("time", 0, "the commit's time, in `seconds` since 1970")
	flag.StringVar(&r.version, "version", "", "the release's version, such as 1.2.3")
	flag.StringVar(&r.commit, "commit", "", "the commit of the source")
	flag.StringVar(&r.out, "out", "", "the `directory` of the packages")
	built := flag.String("platforms", "", "the platforms of the binaries, such as `linux/amd64,darwin/arm64`")
	flag.Parse()
	for text := range strings.SplitSeq(*built, ",") {
		os, arch, ok := strings.Cut(text, "/")
		if !ok {
			log.Fatalf("-platforms: %q is not of the form OS/ARCH, such as linux/amd64", text)
		}
		r.platforms = append(r.platforms, platform{os, arch})
	}
	r.time = time.Unix(*seconds, 0).UTC()
	for _, step := range []struct {
		name string
		make func(release) error
	}{
		{"notice", notice}, // first, because other steps include its file
		{"archives", archives}, {"linux", linux}, {"sboms", sboms}, {"image", image}, {"chart", chart}, {"npm", npm},
	} {
		if err := step.make(r); err != nil {
			log.Fatalf("%s: %v", step.name, err)
		}
	}
}
