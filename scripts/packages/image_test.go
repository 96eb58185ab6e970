package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// imageFile writes an image that contains small files, and returns its path.
func imageFile(t *testing.T, platforms ...platform) string {
	t.Helper()
	r := release{
		version: "1.2.3", commit: "c0ffee", time: time.Unix(1_795_000_000, 0).UTC(), out: t.TempDir(), platforms: platforms,
	}
	t.Chdir(t.TempDir())
	for _, p := range platforms {
		write(t, p.binary(), "of "+p.arch)
	}
	write(t, "source/LICENSE", "license")
	write(t, "NOTICE", "notice")
	if err := image(r); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(r.out, "flake-1.2.3-image.tar")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// entries returns the files in a tar with their contents, and with mode and owner unless they are ordinary files.
func entries(t *testing.T, text []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for from := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := from.Next()
		if err == io.EOF {
			return all
		}
		content, errRead := io.ReadAll(from)
		if err != nil || errRead != nil {
			t.Fatal(err, errRead)
		}
		all[h.Name] = string(content)
		if h.Typeflag == tar.TypeDir || h.Mode != 0o644 {
			all[h.Name] = fmt.Sprintf("%04o %d:%d %s", h.Mode, h.Uid, h.Gid, content)
		}
	}
}

// read returns the image index of the layout in a file.
func read(t *testing.T, name string) v1.ImageIndex {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range entries(t, text) {
		write(t, filepath.Join(dir, name), content)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	all, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImage(t *testing.T) {
	all := read(t, imageFile(t, platform{"darwin", "arm64"}, platform{"linux", "amd64"}, platform{"linux", "arm64"}))
	m, err := all.IndexManifest()
	if err != nil || len(m.Manifests) != 2 {
		t.Fatalf("%+v, %v, want 2 platforms", m, err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		d := m.Manifests[i]
		if d.Platform.OS != "linux" || d.Platform.Architecture != arch {
			t.Errorf("%s: %v", arch, d.Platform)
		}
		img, err := all.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != arch || config.Config.User != "65532:65532" || config.Config.Healthcheck == nil {
			t.Errorf("%s: %+v", arch, config)
		}
		layers, err := img.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		files, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(files)
		files.Close()
		if err != nil {
			t.Fatal(err)
		}
		in := entries(t, layer)
		for name, want := range map[string]string{
			"usr/bin/flake":              "0755 0:0 of " + arch,
			"var/lib/flake/":             "0700 65532:65532 ",
			"var/":                       "0755 0:0 ",
			"usr/share/doc/flake/NOTICE": "notice",
			"etc/passwd":                 passwd,
		} {
			if in[name] != want {
				t.Errorf("%s: %s is %q, want %q", arch, name, in[name], want)
			}
		}
	}
}

// The same files make the same image.
func TestImageAgain(t *testing.T) {
	var texts [2][]byte
	for i := range texts {
		var err error
		if texts[i], err = os.ReadFile(imageFile(t, platform{"linux", "amd64"}, platform{"linux", "arm64"})); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("two images of the same files differ")
	}
}
