package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// Version and Commit are set when packages are built, with
// -ldflags "-X PATH.Version=1.2.3 -X PATH.Commit=...", where PATH is the import path of this package.
var (
	Version = "0.1.0"
	Commit  string
)

func init() { Version, Commit = completed(Version, Commit, debug.ReadBuildInfo) }

// completed adds what Go knows about the build: the version, if the program was installed by
// go install ...@version, and the commit, if the program was built in a clone.
func completed(version, commit string, info func() (*debug.BuildInfo, bool)) (string, string) {
	b, ok := info()
	if !ok {
		return version, commit
	}
	if b.Main.Sum != "" { // the module was downloaded
		version = strings.TrimPrefix(b.Main.Version, "v")
	}
	vcs := make(map[string]string)
	for _, s := range b.Settings {
		vcs[s.Key] = s.Value
	}
	if vcs["vcs.modified"] == "true" {
		vcs["vcs.revision"] += ", modified"
	}
	return version, cmp.Or(commit, vcs["vcs.revision"])
}

// PrintVersion prints the version that is running.
func PrintVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "flake %s\ncommit %s\n%s %s/%s\n",
		Version, cmp.Or(Commit, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
