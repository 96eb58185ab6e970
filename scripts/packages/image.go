package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The image runs under a separate user, with its mark on a volume.
const (
	imageName = "ghcr.io/flake-go/flake"
	imageUser = 65532
	stateDir  = "/var/lib/flake"
	passwd    = "root:x:0:0:root:/root:/sbin/nologin\nflake:x:65532:65532:flake:" + stateDir + ":/sbin/nologin\n"
	group     = "root:x:0:\nflake:x:65532:\n"
)

// image writes an OCI image layout with an image for each Linux platform, as one tar file that
// tools can load or push.
func image(r release) error {
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		one, err := r.image(p)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}})
	}
	all = mutate.Annotations(all, r.annotations()).(v1.ImageIndex)
	top := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: all, Descriptor: v1.Descriptor{Annotations: map[string]string{
			"io.containerd.image.name":          imageName + ":" + r.version,
			"org.opencontainers.image.ref.name": r.version,
		}}})
	dir, err := os.MkdirTemp("", "image-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, top); err != nil {
		return err
	}
	files, err := filesBelow(dir)
	if err != nil {
		return err
	}
	return create(filepath.Join(r.out, "flake-"+r.version+"-image.tar"), func(out io.Writer) error {
		return writeTar(out, "", files, r.time)
	})
}

// image returns the image of one platform. Docker's health check is not part of the OCI format,
// but that format allows extra fields.
func (r release) image(p platform) (v1.Image, error) {
	files, err := r.layer(p)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Created: v1.Time{Time: r.time}, OS: p.os, Architecture: p.arch,
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       fmt.Sprintf("%d:%[1]d", imageUser),
			Entrypoint: []string{"/usr/bin/flake"},
			Env: []string{
				"PATH=/usr/bin",
				"FLAKE_HTTP_LISTEN=[::]:8465",
				"FLAKE_NODE_LISTEN=[::]:4370",
				"XDG_STATE_HOME=" + path.Dir(stateDir), // the file of marks is there by default
			},
			ExposedPorts: map[string]struct{}{"4369/tcp": {}, "4370/tcp": {}, "8465/tcp": {}},
			Volumes:      map[string]struct{}{stateDir: {}},
			WorkingDir:   stateDir,
			StopSignal:   "SIGTERM",
			Labels:       r.annotations(),
			Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/flake", "status"},
				Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: time.Minute, Retries: 3},
		},
	})
	if err != nil {
		return nil, err
	}
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: r.time}, CreatedBy: "scripts/release " + r.version}})
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(img, r.annotations()).(v1.Image), nil
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

// layer returns the files of the image, as a tar.
func (r release) layer(p platform) ([]byte, error) {
	var files []file
	for _, dir := range []string{
		"etc/", "usr/", "usr/bin/", "usr/share/", "usr/share/doc/", "usr/share/doc/flake/", "var/", "var/lib/",
	} {
		files = append(files, file{name: dir, mode: 0o755})
	}
	files = append(files,
		file{name: stateDir[1:] + "/", mode: 0o700, owner: imageUser},
		file{name: "etc/passwd", text: passwd, mode: 0o644},
		file{name: "etc/group", text: group, mode: 0o644},
		file{name: "usr/bin/flake", from: p.binary(), mode: 0o755},
		file{name: "usr/share/doc/flake/LICENSE", from: "source/LICENSE", mode: 0o644},
		file{name: "usr/share/doc/flake/NOTICE", from: "NOTICE", mode: 0o644})
	var text bytes.Buffer
	err := writeTar(&text, "", files, r.time)
	return text.Bytes(), err
}
