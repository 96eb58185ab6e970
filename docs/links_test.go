// Package docs contains the chapters of the manual. Its tests check their links, programs and
// messages.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestLinks follows the links in all documents of the repository, and those from its code to
// chapters.
func TestLinks(t *testing.T) {
	for _, fault := range follow(t, os.DirFS("..")) {
		t.Error(fault)
	}
}

// TestLinksFinds checks that follow finds each kind of fault.
func TestLinksFinds(t *testing.T) {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	tree := fstest.MapFS{
		"README.md": text("# It\n[a](docs/a.md) [`b`](docs/b.md#two--three) [c](#it) [d](https://d) <img " +
			"src=\"no.svg\">\n"),
		"docs/a.md": text("# A\n[up](../README.md#it) [out](../../README.md) [code](../main.go)\n```\n# No " +
			"heading\n[x](y)\n```\n"),
		"docs/b.md": text("# One\n## Two, `Three`?\n## Two & *three*\n## One\n[1](#one-1) [2](#one-2) " +
			"[3](a.md#no-heading) `[x](y)`\n"),
		"main.go":      text("// See docs/a.md and docs/c.md.\n"),
		"bin/a.md":     text("[built](no.md)\n"),
		"docs/more.md": text("See [the first](a.md).\n"),

		"docs/operating/README.md": text("[up](../a.md) [p](page.md#p)\n"),
		"docs/operating/page.md":   text("# P\n[over](../../README.md#it)\n"),
		"docs/operating/lost.md":   text("# L\n[p](page.md)\n"),
	}
	want := []string{
		"README.md: no.svg does not exist",
		"docs/a.md: ../../README.md does not exist",
		"docs/b.md: #one-2 is not a heading in docs/b.md",
		"docs/b.md: a.md#no-heading is not a heading in docs/a.md",
		"main.go: docs/c.md does not exist",
		"docs/more.md: no link in README.md leads here",
		"docs/operating/README.md: no link in README.md leads here",
		"docs/operating/lost.md: no link in docs/operating/README.md leads here",
	}
	if got := follow(t, tree); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestReadme keeps README.md short enough for a newcomer to read in one sitting.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 200 {
		t.Errorf("README.md has %d lines, more than 200", lines)
	}
}

// TestChapters checks that each chapter begins by saying whom it is for, and that the pages of
// the operating guide are short.
func TestChapters(t *testing.T) {
	names, err1 := filepath.Glob("*.md")
	pages, err2 := filepath.Glob("*/*.md")
	if err1 != nil || err2 != nil || len(names) == 0 || len(pages) == 0 {
		t.Fatal(names, pages, err1, err2)
	}
	for _, name := range append(names, pages...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, body, _ := strings.Cut(string(text), "\n\n"); !strings.HasPrefix(body, "For ") {
			t.Errorf("%s does not begin by saying whom it is for", name)
		}
		if lines := strings.Count(string(text), "\n"); strings.HasPrefix(name, "operating/") && lines > 200 {
			t.Errorf("%s has %d lines, more than 200", name, lines)
		}
	}
}

// TestPackages compares the table of packages in ARCHITECTURE.md with the packages of the module,
// except scripts, examples and test helpers.
func TestPackages(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	imports, err := os.ReadFile("../scripts/imports.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| package | holds |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[string]bool{}
	for row := range strings.Lines(table) {
		for _, name := range code.FindAllString(strings.Split(row, "|")[1], -1) {
			name = strings.Trim(name, "`")
			listed[name] = true
			if _, err := os.Stat("../" + name); err != nil {
				t.Errorf("ARCHITECTURE.md lists %s, which does not exist", name)
			}
		}
	}
	for _, name := range strings.Fields(string(imports)) {
		ours := !strings.HasPrefix(name, "scripts/") && !strings.HasSuffix(name, "/example") &&
			!strings.HasSuffix(name, "httptest")
		if ours && !listed[name] {
			t.Errorf("ARCHITECTURE.md does not list %s", name)
			listed[name] = true // once is enough
		}
	}
}

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	code     = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"`)
	external = regexp.MustCompile(`^[a-z]+:`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	chapter  = regexp.MustCompile(`\bdocs/[A-Za-z/-]+\.md\b`)

	// Folders whose README.md is an index.
	folders = []string{"docs/operating", "docs/coming-from"}
	// Folders with built or downloaded files.
	skipped = []string{".git", "_build", "bin", "deps", "node_modules"}
)

// follow returns the links in a tree that lead nowhere, and the documents that no link from their
// index leads to.
func follow(t *testing.T, tree fs.FS) (faults []string) {
	t.Helper()
	texts := map[string]string{}
	var names []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch ext := path.Ext(name); {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case !d.IsDir() && (ext == ".md" || ext == ".go"):
			text, err := fs.ReadFile(tree, name)
			texts[name] = string(text)
			names = append(names, name)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{"README.md": true}
	for _, name := range names {
		for _, target := range targets(name, texts[name]) {
			file, anchor := resolve(name, target)
			if _, err := fs.Stat(tree, file); err != nil {
				faults = append(faults, fmt.Sprintf("%s: %s does not exist", name, target))
			} else if anchor != "" && !slices.Contains(anchors(texts[file]), anchor) {
				faults = append(faults, fmt.Sprintf("%s: %s is not a heading in %s", name, target, file))
			}
			if name == index(file) {
				linked[file] = true
			}
		}
	}
	for _, name := range names {
		if in := index(name); in != "" && !linked[name] {
			faults = append(faults, fmt.Sprintf("%s: no link in %s leads here", name, in))
		}
	}
	return faults
}

// index returns the document that must link to the document name, or "" if none must.
func index(name string) string {
	switch dir := path.Dir(name); {
	case path.Ext(name) != ".md":
	case slices.Contains(folders, dir) && path.Base(name) != "README.md":
		return dir + "/README.md"
	case dir == "." || dir == "docs" || slices.Contains(folders, dir):
		return "README.md"
	}
	return ""
}

// resolve returns the file that a link in the file from leads to, as a path from the root of the
// tree, and the anchor in that file.
func resolve(from, target string) (file, anchor string) {
	file, anchor, _ = strings.Cut(target, "#")
	switch {
	case path.Ext(from) == ".go":
		return file, anchor
	case file == "":
		return from, anchor
	}
	return path.Join(path.Dir(from), file), anchor
}

// targets returns the link targets in a file, except those on other sites. Code links to chapters
// by their paths.
func targets(name, text string) (all []string) {
	if path.Ext(name) == ".go" {
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		return chapter.FindAllString(text, -1)
	}
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""), -1) {
		if target := m[1] + m[2]; !external.MatchString(target) {
			all = append(all, target)
		}
	}
	return all
}

// anchors returns the anchors of a document's headings, as GitHub makes them.
func anchors(text string) (all []string) {
	times := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case strings.ContainsRune("!\"#$%&'()*+,./:;<=>?@[\\]^`{|}~", r):
				return -1
			}
			return r
		}, strings.ToLower(m[1]))
		times[anchor]++
		if n := times[anchor]; n > 1 {
			anchor = fmt.Sprintf("%s-%d", anchor, n-1)
		}
		all = append(all, anchor)
	}
	return all
}
