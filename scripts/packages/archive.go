package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A file is a member of an archive.
type file struct {
	name  string // its name in the archive; a directory's ends with a slash
	from  string // the path that it is read from, or empty
	mode  int64
	text  string // its content, if from is empty
	owner int    // the number of its user, and of its group
}

// archives makes an archive of the command and its documents for each platform.
func archives(r release) error {
	for _, p := range r.platforms {
		dir := r.name(p)
		files := []file{
			{name: "CHANGELOG.md", from: "source/CHANGELOG.md", mode: 0o644},
			{name: "LICENSE", from: "source/LICENSE", mode: 0o644},
			{name: "NOTICE", from: "NOTICE", mode: 0o644},
			{name: "README.md", from: "source/README.md", mode: 0o644},
			{name: "alerts.yml", from: "source/rel/files/alerts.yml", mode: 0o644},
			{name: "completions/_flake", from: "completion.zsh", mode: 0o644},
			{name: "completions/flake.bash", from: "completion.bash", mode: 0o644},
			{name: "completions/flake.fish", from: "completion.fish", mode: 0o644},
			{name: "flake", from: p.binary(), mode: 0o755},
			{name: "grafana.json", from: "source/rel/files/grafana.json", mode: 0o644},
			{name: "ids.sql", from: "source/rel/files/ids.sql", mode: 0o644},
			{name: "man/flake.1", from: "flake.1", mode: 0o644},
			{name: "sys.toml", from: "source/rel/files/sys.toml", mode: 0o644},
		}
		if err := r.archive(dir+".tar.gz", dir, files); err != nil {
			return err
		}
	}
	return nil
}

// archive makes an archive that contains files, below the directory dir.
func (r release) archive(name, dir string, files []file) error {
	return create(filepath.Join(r.out, name), func(out io.Writer) error {
		return gzipped(out, func(w io.Writer) error { return writeTar(w, dir+"/", files, r.time) })
	})
}

// create creates a file that contains what write writes.
func create(name string, write func(io.Writer) error) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(out), out.Close())
}

// gzipped compresses what write writes. The header contains neither a name nor a time.
func gzipped(out io.Writer, write func(io.Writer) error) error {
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(write(zipped), zipped.Close())
}

// writeTar writes files as a tar, with a prefix before each name. All files have the same time.
func writeTar(out io.Writer, prefix string, files []file, at time.Time) error {
	to := tar.NewWriter(out)
	for _, f := range files {
		content := []byte(f.text)
		if f.from != "" {
			var err error
			if content, err = os.ReadFile(f.from); err != nil {
				return err
			}
		}
		header := &tar.Header{ // the type follows from the name
			Name: prefix + f.name, Size: int64(len(content)), Mode: f.mode, Uid: f.owner, Gid: f.owner,
			ModTime: at, Format: tar.FormatPAX,
		}
		if f.owner == 0 {
			header.Uname, header.Gname = "root", "root"
		}
		if err := to.WriteHeader(header); err != nil {
			return err
		}
		if _, err := to.Write(content); err != nil {
			return err
		}
	}
	return to.Close()
}

// chart packs the chart for Kubernetes, as helm package does.
func chart(r release) error {
	files, err := filesBelow("source/rel/helm/flake")
	if err != nil {
		return err
	}
	return r.archive("flake-chart-"+r.version+".tgz", "flake", files)
}

// filesBelow returns all files below a directory, named by their paths from there.
func filesBelow(top string) (files []file, err error) {
	err = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(top, name)
		files = append(files, file{name: filepath.ToSlash(inside), from: name, mode: 0o644})
		return err
	})
	return files, err
}

// npm packs the client library for JavaScript, as npm pack does. Its CommonJS modules must have
// been built.
func npm(r release) error {
	top := "source/clients/javascript"
	text, err := os.ReadFile(filepath.Join(top, "package.json"))
	if err != nil {
		return err
	}
	var p struct{ Name string }
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	files := []file{{name: "LICENSE", from: "source/LICENSE", mode: 0o644}}
	for _, pattern := range []string{"README.md", "cjs/*", "idgen/*", "package.json", "src/*"} {
		found, _ := fs.Glob(os.DirFS(top), pattern) // fails only for a bad pattern
		if len(found) == 0 {
			return fmt.Errorf("no %s in clients/javascript", pattern)
		}
		for _, name := range found {
			files = append(files, file{name: name, from: filepath.Join(top, name), mode: 0o644})
		}
	}
	return r.archive(p.Name+"-"+r.version+".tgz", "package", files)
}
