package main

import (
	"go/ast"
	"go/parser"
	syntax "go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// All log lines use the keys that docs/configuration.md lists: one word for one thing.
func TestLogKeys(t *testing.T) {
	const root, chapter = "../..", "docs/configuration.md"
	used := make(map[string]syntax.Position) // by key
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root &&
			(d.Name() == "testdata" || d.Name() == "scripts" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := syntax.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				for _, key := range keysOf(c) {
					used[key] = set.Position(c.Pos())
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	doc := readFile(t, filepath.Join(root, chapter))
	_, table, _ := strings.Cut(doc, "\n## The log\n")
	listed := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+`) \\|").FindAllStringSubmatch(table, -1) {
		for key := range strings.SplitSeq(row[1], ", ") {
			listed[strings.Trim(key, "`")] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(used)) {
		if !listed[key] {
			t.Errorf("%s: key %q is not in %s: use one that is, if it means the same", used[key], key, chapter)
		}
		delete(listed, key)
	}
	for key := range listed {
		t.Errorf("%s: key %q is in no log line", chapter, key)
	}
}

// keysOf returns the keys of a call that logs, or that adds attributes to a logger.
func keysOf(c *ast.CallExpr) (keys []string) {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	first := map[string]int{"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3}
	from, logs := first[f.Sel.Name]
	if x, ok := f.X.(*ast.Ident); !logs || ok && (x.Name == "http" || x.Name == "t") {
		return nil
	}
	for i := from; i+1 < len(c.Args); i += 2 {
		key := "(not a constant)"
		if l, ok := c.Args[i].(*ast.BasicLit); ok {
			key, _ = strconv.Unquote(l.Value)
		}
		keys = append(keys, key)
	}
	return keys
}
