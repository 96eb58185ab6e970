package docs

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWorkflows checks that workflows pin actions by commit, and name their version for readers and
// Dependabot; and that one workflow runs what CI runs, and another all tests with the oldest Go.
func TestWorkflows(t *testing.T) {
	names, err := fs.Glob(os.DirFS(".."), ".github/workflows/*.yml")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	var all strings.Builder
	pinned := regexp.MustCompile(`^[\w-]+/[\w/-]+@[0-9a-f]{40} # v[0-9.]+$`)
	for _, name := range names {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
		for line := range strings.Lines(string(text)) {
			if _, action, found := strings.Cut(line, "uses: "); found && !pinned.MatchString(strings.TrimSpace(action)) {
				t.Errorf("%s: %s is not pinned by the hash of a commit", name, strings.TrimSpace(action))
			}
		}
	}
	for _, want := range []string{"uses: ", "run: .ci/run\n", "go-version-file: go.mod\n      - run: go test ./...\n"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no workflow contains %q", want)
		}
	}
}

// TestModules checks that all Go modules allow the same oldest Go, and that Dependabot reads each of
// them, and each package.json with dependencies.
func TestModules(t *testing.T) {
	text, err := os.ReadFile("../.github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, folder := range regexp.MustCompile(`(?m)^      - (/.*)$`).FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, folder[1])
	}
	var want []string
	oldest := ""
	err = fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && slices.Contains(skipped, d.Name()) {
			return cmp.Or(err, fs.SkipDir)
		}
		if base := path.Base(name); base != "go.mod" && base != "package.json" {
			return nil
		}
		text, err := os.ReadFile("../" + name)
		switch goLine := regexp.MustCompile(`(?m)^go .*$`).FindString(string(text)); {
		case path.Base(name) == "package.json" && !strings.Contains(string(text), "ependencies\": {"):
			return err
		case oldest == "":
			oldest = goLine
		case goLine != "" && goLine != oldest:
			t.Errorf("%s says %s, another module %s", name, goLine, oldest)
		}
		want = append(want, path.Join("/", path.Dir(name)))
		return err
	})
	slices.Sort(listed)
	slices.Sort(want)
	if err != nil || !slices.Equal(listed, want) {
		t.Errorf("dependabot.yml lists %q, want %q; %v", listed, want, err)
	}
}
