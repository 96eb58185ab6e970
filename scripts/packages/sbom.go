package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// sboms writes a bill of materials for each binary, from its build information.
func sboms(r release) error {
	for _, p := range r.platforms {
		binary, err := os.ReadFile(p.binary())
		if err != nil {
			return err
		}
		built, err := buildinfo.ReadFile(p.binary())
		if err != nil {
			return err
		}
		err = create(filepath.Join(r.out, r.name(p)+".cdx.json"), func(out io.Writer) error {
			return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).
				EncodeVersion(r.bom(built, sha256.Sum256(binary)), cyclonedx.SpecVersion1_5)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bom returns the bill of materials of a binary.
func (r release) bom(built *debug.BuildInfo, sum [sha256.Size]byte) *cyclonedx.BOM {
	main := goModule(cyclonedx.ComponentTypeApplication, built.Main.Path, "v"+r.version)
	main.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}}
	main.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	settings := []cyclonedx.Property{{Name: "commit", Value: r.commit}}
	for _, s := range built.Settings {
		settings = append(settings, cyclonedx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	main.Properties = &settings
	components := []cyclonedx.Component{goModule(cyclonedx.ComponentTypeLibrary, "std", built.GoVersion)}
	for _, m := range built.Deps {
		c := goModule(cyclonedx.ComponentTypeLibrary, m.Path, m.Version)
		c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.Sum}}
		components = append(components, c)
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	b := cyclonedx.NewBOM()
	b.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &main}
	b.Components = &components
	b.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return b
}

// goModule returns a Go module as a component. Its package URL escapes any + in the version.
func goModule(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cyclonedx.Component{Type: kind, BOMRef: purl, Name: path, Version: version, PackageURL: purl}
}
