// Command packages makes the packages of a release: archives, deb and rpm packages, bills
// of materials, an image for containers, a chart for Kubernetes, a client library for npm. scripts/release builds what
// goes into them, and runs it. The same input makes the same bytes.
package main

import (
	"flag"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"
)

// A release is what all packages of one version are made of.
type release struct {
	version string    // without a v, as 1.2.3
	commit  string    // of the source
	time    time.Time // of the commit, and of every file in a package
	root    string    // the folder of the source
	stage   string    // the folder of what was built: GOOS-GOARCH/flake, flake.1, completion.SHELL
	out     string    // the folder of the packages

	platforms []platform // those that binaries were built for
}

// A platform is what a binary runs on, in Go's names.
type platform struct{ os, arch string }

// binary returns where the command for a platform is.
func (r release) binary(p platform) string {
	return fmt.Sprintf("%s/%s-%s/flake", r.stage, p.os, p.arch)
}

// name returns what files for a platform are named after.
func (r release) name(p platform) string {
	return fmt.Sprintf("flake-%s-%s-%s", r.version, p.os, p.arch)
}

// A step makes the packages of one kind.
type step struct {
	name string
	make func(release) error
}

var steps = []step{
	{"notice", notice},
	{"archives", archives},
	{"linux", linux},
	{"sboms", sboms},
	{"image", image},
	{"chart", chart},
	{"npm", npm},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("packages: ")
	var r release
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	seconds := flag.Int64("time", 0, "the commit's time, in `seconds` since 1970")
	only := flag.String("only", strings.Join(names, ","), "the `steps` to run")
	flag.StringVar(&r.version, "version", "", "the release's version, as 1.2.3")
	flag.StringVar(&r.commit, "commit", "", "the commit of the source")
	flag.StringVar(&r.root, "root", ".", "the `folder` of the source")
	flag.StringVar(&r.stage, "stage", "", "the `folder` of what was built")
	flag.StringVar(&r.out, "out", "", "the `folder` of the packages")
	built := flag.String("platforms", "", "what binaries were built for, as `linux/amd64,darwin/arm64`")
	flag.Parse()
	for text := range strings.SplitSeq(*built, ",") {
		os, arch, ok := strings.Cut(text, "/")
		if !ok {
			log.Fatalf("-platforms: %q is not like linux/amd64", text)
		}
		r.platforms = append(r.platforms, platform{os, arch})
	}
	r.time = time.Unix(*seconds, 0).UTC()
	for name := range strings.SplitSeq(*only, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			log.Fatalf("-only: there is no step %q, only %s", name, strings.Join(names, ", "))
		}
		if err := steps[i].make(r); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
}
