package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMessages checks that the code has the messages that the troubleshooting page explains.
// Readers search the page for a message, so they would not find a row that quotes an old one. A row
// quotes only the distinctive part of its message.
func TestMessages(t *testing.T) {
	rows := rowsOf(t, "operating/troubleshooting.md")
	texts := textsOf(t)
	if len(rows) < 20 || len(texts) < 20 {
		t.Fatalf("found only %d rows and %d strings", len(rows), len(texts))
	}
	for _, row := range rows {
		matching := func(text string) bool { return matches(text, row) }
		if !slices.Contains(foreign, row) && !slices.ContainsFunc(texts, matching) {
			t.Errorf("the code has no message %q", row)
		}
	}
}

// foreign lists messages of the operating system and of other modules, and replies of OTP.
var foreign = []string{
	"address already in use", "bind: permission denied", "permission denied", "no such file or directory",
	"certificate signed by unknown authority", "failed to verify certificate", "{nodedown, Node}",
	"connect: connection refused", "Couldn't connect to server",
}

// matches reports whether text contains row, in which "..." stands for anything.
func matches(text, row string) bool {
	for part := range strings.SplitSeq(row, "...") {
		_, after, found := strings.Cut(text, strings.TrimSpace(part))
		if !found {
			return false
		}
		text = after
	}
	return true
}

var cell = regexp.MustCompile("`([^`]+)`")

// rowsOf returns the backquoted text in the first cells of a page's tables.
func rowsOf(t *testing.T, page string) (rows []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if first, found := strings.CutPrefix(line, "| `"); found {
			first, _, _ = strings.Cut("`"+first, " | ")
			for _, m := range cell.FindAllStringSubmatch(first, -1) {
				if m[1] != "/readyz" {
					rows = append(rows, m[1])
				}
			}
		}
	}
	return rows
}

// textsOf returns the string literals in the module's code.
func textsOf(t *testing.T) (texts []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(skipped, d.Name()) || d.Name() == "scripts"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, _ := strconv.Unquote(l.Value)
				texts = append(texts, text)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}
