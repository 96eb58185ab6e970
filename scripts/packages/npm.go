package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// npm packs the client library for JavaScript, as npm pack does. Its CommonJS modules
// have been made.
func npm(r release) error {
	top := filepath.Join(r.root, "clients/javascript")
	text, err := os.ReadFile(filepath.Join(top, "package.json"))
	if err != nil {
		return err
	}
	var p struct{ Name, Version string }
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	if p.Version != r.version {
		return fmt.Errorf("clients/javascript/package.json has version %s, not %s", p.Version, r.version)
	}
	files := []file{{"LICENSE", filepath.Join(r.root, "LICENSE"), 0o644}}
	for _, pattern := range []string{"README.md", "cjs/*", "package.json", "src/*"} {
		found, _ := fs.Glob(os.DirFS(top), pattern) // fails only for a bad pattern
		if len(found) == 0 {
			return fmt.Errorf("no %s in clients/javascript", pattern)
		}
		for _, name := range found {
			files = append(files, file{name, filepath.Join(top, name), 0o644})
		}
	}
	return writeArchive(filepath.Join(r.out, p.Name+"-"+r.version+".tgz"), "package", files, r.time)
}
