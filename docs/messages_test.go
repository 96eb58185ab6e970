package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMessages compares the tables of log lines and of refusals with the code of the command.
// A row has what its message is known by, not the whole of it. Each warning or error that is
// logged needs a row of the log, and each error with advice behind a semicolon a row of either
// table. No row may be of nothing.
func TestMessages(t *testing.T) {
	said := messagesOf(t)
	if len(said.logged) < 20 || len(said.errors) < 20 {
		t.Fatalf("found only %d log lines and %d errors", len(said.logged), len(said.errors))
	}
	log := rowsOf(t, "operating/log.md")
	all := slices.Concat(log, rowsOf(t, "operating/refusals.md"))
	for _, m := range said.logged {
		if !slices.ContainsFunc(log, m.has) {
			t.Errorf("%s: no row of operating/log.md has %q", m.at, m.text)
		}
	}
	for _, m := range said.errors {
		if !slices.ContainsFunc(all, m.has) {
			t.Errorf("%s: no row of operating/refusals.md has %q", m.at, m.text)
		}
	}
	for _, row := range all {
		ours := func(m message) bool { return m.has(row) }
		if !slices.Contains(ofOthers, row) && !slices.ContainsFunc(said.texts, ours) {
			t.Errorf("the code has no message %q", row)
		}
	}
}

// ofOthers are messages of the system and of other modules.
var ofOthers = []string{
	"address already in use", "bind: permission denied", "permission denied", "no such file or directory",
	"certificate signed by unknown authority", "failed to verify certificate",
}

// A message is a text in the code, and where it is.
type message struct{ text, at string }

// has reports whether the message contains a row's text, whose "..." stand for anything.
func (m message) has(row string) bool {
	rest := m.text
	for part := range strings.SplitSeq(row, "...") {
		_, after, found := strings.Cut(rest, strings.TrimSpace(part))
		if !found {
			return false
		}
		rest = after
	}
	return true
}

var cell = regexp.MustCompile("`([^`]+)`")

// rowsOf returns the quoted texts of the first cells of a page's table.
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
				rows = append(rows, m[1])
			}
		}
	}
	return rows
}

type messages struct{ logged, errors, texts []message }

// messagesOf reads the packages that the command consists of.
func messagesOf(t *testing.T) (all messages) {
	t.Helper()
	imports, err := os.ReadFile("../scripts/imports.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range closure("rel/flake", string(imports)) {
		names, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || len(names) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				all.add(t, name)
			}
		}
	}
	return all
}

// closure returns a package and all of the module that it needs.
func closure(root, imports string) []string {
	all := []string{root}
	for i := 0; i < len(all); i++ {
		for line := range strings.Lines(imports) {
			if from, to, _ := strings.Cut(strings.TrimSpace(line), " "); from == all[i] && !slices.Contains(all, to) {
				all = append(all, to)
			}
		}
	}
	return all
}

var (
	own      = regexp.MustCompile(`%[#+0-9.]*[a-z]|see flake help|^flake: |^timestamp_path`)
	advising = regexp.MustCompile(`^[^;]*[a-z][^;]*; .*[a-z]`)
)

// add adds the messages of a file. What joins constants counts as its literals.
func (a *messages) add(t *testing.T, name string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				a.texts = append(a.texts, message{text, set.Position(n.Pos()).String()})
			}
		case *ast.CallExpr:
			kind, text := called(n)
			m := message{text, set.Position(n.Pos()).String()}
			switch {
			case kind == "log":
				a.logged = append(a.logged, m)
			case kind == "error" && advising.MatchString(own.ReplaceAllString(text, "")):
				a.errors = append(a.errors, m)
			}
		}
		return true
	})
}

// called returns the text of a call that logs a warning or an error, or makes an error.
func called(c *ast.CallExpr) (kind, text string) {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	at, kind := 0, "log"
	switch f.Sel.Name {
	case "Warn", "Error":
	case "WarnContext", "ErrorContext":
		at = 1
	case "Log", "LogAttrs":
		at = 2
	case "New", "Errorf":
		kind = "error"
	default:
		return "", ""
	}
	if at >= len(c.Args) {
		return "", ""
	}
	ast.Inspect(c.Args[at], func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			part, _ := strconv.Unquote(l.Value)
			text += part
		}
		return true
	})
	return kind, text
}
