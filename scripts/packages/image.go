package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The image runs as a user of its own, whose mark is on a volume.
const (
	imageName = "ghcr.io/flake-go/flake"
	imageUser = 65532
	stateDir  = "/var/lib/flake"
	passwd    = "root:x:0:0:root:/root:/sbin/nologin\nflake:x:65532:65532:flake:" + stateDir + ":/sbin/nologin\n"
	group     = "root:x:0:\nflake:x:65532:\n"
)

// Media types of the OCI image format, https://github.com/opencontainers/image-spec.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    map[string]string `json:"platform,omitempty"`
}

type index struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Manifests     []descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations"`
}

// A layout is an OCI image layout: a tar of files whose names are the digests of their bytes.
type layout struct {
	to   *tar.Writer
	time time.Time
}

// image writes an image for each Linux, in one file that tools load or push.
func image(r release) (err error) {
	out, err := os.Create(filepath.Join(r.out, "flake-"+r.version+"-image.tar"))
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, out.Close()) }()
	l := layout{tar.NewWriter(out), r.time}
	all := index{2, typeIndex, nil, r.annotations()}
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		d, err := l.platform(r, p)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
		all.Manifests = append(all.Manifests, d)
	}
	top, err := l.blob(typeIndex, all)
	if err != nil {
		return err
	}
	top.Annotations = map[string]string{
		"io.containerd.image.name":          imageName + ":" + r.version,
		"org.opencontainers.image.ref.name": r.version,
	}
	if err := l.json("index.json", index{2, typeIndex, []descriptor{top}, nil}); err != nil {
		return err
	}
	if err := l.json("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}); err != nil {
		return err
	}
	return l.to.Close()
}

// platform writes the image of one platform.
func (l layout) platform(r release, p platform) (descriptor, error) {
	plain, zipped, err := layer(r, p)
	if err != nil {
		return descriptor{}, err
	}
	m := manifest{SchemaVersion: 2, MediaType: typeManifest, Annotations: r.annotations()}
	m.Config, err = l.blob(typeConfig, imageConfig(r, p, digest(plain)))
	if err != nil {
		return descriptor{}, err
	}
	m.Layers = []descriptor{{MediaType: typeLayer, Digest: digest(zipped), Size: len(zipped)}}
	if err := l.file("blobs/sha256/"+m.Layers[0].Digest[len("sha256:"):], zipped); err != nil {
		return descriptor{}, err
	}
	d, err := l.blob(typeManifest, m)
	d.Platform = map[string]string{"os": p.os, "architecture": p.arch}
	return d, err
}

// imageConfig says how a container runs. Health checks are Docker's: the format has none, but
// allows for more keys.
func imageConfig(r release, p platform, layer string) map[string]any {
	none := struct{}{}
	return map[string]any{
		"created": r.time, "os": p.os, "architecture": p.arch,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{layer}},
		"history": []any{map[string]any{"created": r.time, "created_by": "scripts/release " + r.version}},
		"config": map[string]any{
			"User":       fmt.Sprintf("%d:%[1]d", imageUser),
			"Entrypoint": []string{"/usr/bin/flake"},
			"Env": []string{
				"PATH=/usr/bin",
				"FLAKE_FLAKE_TIMESTAMP_PATH=" + stateDir + "/timestamp",
				"FLAKE_FLAKE_WORKER_ID=random",
				"FLAKE_HTTP_LISTEN=[::]:8465",
				"FLAKE_NODE_LISTEN=[::]:4370",
			},
			"ExposedPorts": map[string]any{"4369/tcp": none, "4370/tcp": none, "8465/tcp": none},
			"Volumes":      map[string]any{stateDir: none},
			"WorkingDir":   stateDir,
			"StopSignal":   "SIGTERM",
			"Labels":       r.annotations(),
			"Healthcheck": map[string]any{
				"Test":     []string{"CMD", "/usr/bin/flake", "status"},
				"Interval": 30 * time.Second, "Timeout": 10 * time.Second, "StartPeriod": time.Minute, "Retries": 3,
			},
		},
	}
}

func (r release) annotations() map[string]string {
	values := map[string]string{
		"title": "flake", "description": summary, "licenses": "Apache-2.0",
		"version": r.version, "revision": r.commit, "created": r.time.Format(time.RFC3339),
		"url": homepage, "source": homepage, "documentation": homepage + "/blob/main/docs/containers.md",
	}
	all := map[string]string{}
	for key, value := range values {
		all["org.opencontainers.image."+key] = value
	}
	return all
}

// layer returns the files of the image, as a tar and compressed.
func layer(r release, p platform) (plain, zipped []byte, err error) {
	var tarred bytes.Buffer
	to := tar.NewWriter(&tarred)
	add := func(name string, mode int64, owner int, text []byte) {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Uid: owner, Gid: owner, Size: int64(len(text)), ModTime: r.time}
		if name[len(name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err == nil {
			err = to.WriteHeader(h)
		}
		if err == nil {
			_, err = to.Write(text)
		}
	}
	read := func(name string) []byte {
		text, errRead := os.ReadFile(name)
		err = cmp.Or(err, errRead)
		return text
	}
	for _, dir := range []string{"etc/", "usr/", "usr/bin/", "usr/share/", "usr/share/doc/", "usr/share/doc/flake/", "var/", "var/lib/"} {
		add(dir, 0o755, 0, nil)
	}
	add(stateDir[1:]+"/", 0o700, imageUser, nil)
	add("etc/passwd", 0o644, 0, []byte(passwd))
	add("etc/group", 0o644, 0, []byte(group))
	add("usr/bin/flake", 0o755, 0, read(r.binary(p)))
	add("usr/share/doc/flake/LICENSE", 0o644, 0, read(filepath.Join(r.root, "LICENSE")))
	add("usr/share/doc/flake/NOTICE", 0o644, 0, read(filepath.Join(r.stage, "NOTICE")))
	if err = cmp.Or(err, to.Close()); err != nil {
		return nil, nil, err
	}
	zipped, err = compressed(tarred.Bytes())
	return tarred.Bytes(), zipped, err
}

// blob writes a value as JSON and returns what leads to it.
func (l layout) blob(mediaType string, value any) (descriptor, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	d := descriptor{MediaType: mediaType, Digest: digest(text), Size: len(text)}
	return d, l.file("blobs/sha256/"+d.Digest[len("sha256:"):], text)
}

func (l layout) json(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return l.file(name, text)
}

func (l layout) file(name string, text []byte) error {
	err := l.to.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text)), ModTime: l.time})
	if err != nil {
		return err
	}
	_, err = l.to.Write(text)
	return err
}

func digest(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }
