package main

import (
	"io/fs"
	"path/filepath"
)

// chart packs the chart for Kubernetes, as helm package does.
func chart(r release) error {
	files, err := filesBelow(filepath.Join(r.root, "rel/helm/flake"))
	if err != nil {
		return err
	}
	return writeArchive(filepath.Join(r.out, "flake-chart-"+r.version+".tgz"), "flake", files, r.time)
}

// filesBelow returns all files below a folder, named by their paths from there.
func filesBelow(top string) (files []file, err error) {
	err = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(top, name)
		files = append(files, file{filepath.ToSlash(inside), name, 0o644})
		return err
	})
	return files, err
}
