package main

import (
	"io/fs"
	"path/filepath"
)

// chart packs the chart for Kubernetes, as helm package does.
func chart(r release) error {
	var files []file
	top := filepath.Join(r.root, "rel/helm/flake")
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(top, name)
		files = append(files, file{filepath.ToSlash(inside), name, 0o644})
		return err
	})
	if err != nil {
		return err
	}
	return writeArchive(filepath.Join(r.out, "flake-chart-"+r.version+".tgz"), "flake", files, r.time)
}
