package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// imageFile makes an image of small files, and returns the file that it is in.
func imageFile(t *testing.T, platforms ...platform) string {
	t.Helper()
	r := release{version: "1.2.3", commit: "c0ffee", time: time.Unix(1_795_000_000, 0).UTC(), root: t.TempDir(), stage: t.TempDir(), out: t.TempDir(), platforms: platforms}
	for _, p := range platforms {
		if err := os.MkdirAll(filepath.Dir(r.binary(p)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, r.binary(p), "of "+p.arch)
	}
	write(t, filepath.Join(r.root, "LICENSE"), "license")
	write(t, filepath.Join(r.stage, "NOTICE"), "notice")
	if err := image(r); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(r.out, "flake-1.2.3-image.tar")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// entries returns the files of a tar, and what is special about them.
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

func TestImage(t *testing.T) {
	text, err := os.ReadFile(imageFile(t, platform{"darwin", "arm64"}, platform{"linux", "amd64"}, platform{"linux", "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	all := entries(t, text)
	read := func(d descriptor, into any) []byte {
		t.Helper()
		text := []byte(all["blobs/sha256/"+d.Digest[len("sha256:"):]])
		if digest(text) != d.Digest || len(text) != d.Size {
			t.Fatalf("%+v leads to %q", d, text)
		}
		if into != nil {
			if err := json.Unmarshal(text, into); err != nil {
				t.Fatal(err)
			}
		}
		return text
	}
	if all["oci-layout"] != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout: %s", all["oci-layout"])
	}
	var top, platforms index
	if err := json.Unmarshal([]byte(all["index.json"]), &top); err != nil {
		t.Fatal(err)
	}
	read(top.Manifests[0], &platforms)
	if len(platforms.Manifests) != 2 {
		t.Fatalf("%d platforms, want 2", len(platforms.Manifests))
	}
	for i, arch := range []string{"amd64", "arm64"} {
		d := platforms.Manifests[i]
		if d.Platform["os"] != "linux" || d.Platform["architecture"] != arch {
			t.Errorf("%s: %v", arch, d.Platform)
		}
		var m manifest
		read(d, &m)
		var config struct {
			Architecture string
			Rootfs       struct {
				Layers []string `json:"diff_ids"`
			}
			Config struct{ User string }
		}
		read(m.Config, &config)
		zipped, err := gzip.NewReader(bytes.NewReader(read(m.Layers[0], nil)))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(zipped)
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != arch || config.Rootfs.Layers[0] != digest(layer) || config.Config.User != "65532:65532" {
			t.Errorf("%s: %+v", arch, config)
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
		t.Error("two images differ")
	}
}
