package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// A bom is a bill of materials as CycloneDX 1.5 has it, as far as we fill it.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// sboms writes a bill of materials for each binary: what Go says it was built of.
func sboms(r release) error {
	for _, p := range r.platforms {
		binary, err := os.ReadFile(r.binary(p))
		if err != nil {
			return err
		}
		built, err := buildinfo.ReadFile(r.binary(p))
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(r.bom(built, sha256.Sum256(binary)), "", "  ")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s.cdx.json", r.name(p))
		if err := os.WriteFile(filepath.Join(r.out, name), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// bom returns the bill of materials of a binary.
func (r release) bom(built *debug.BuildInfo, sum [sha256.Size]byte) bom {
	main := goModule("application", built.Main.Path, "v"+r.version)
	main.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}
	main.Licenses = make([]license, 1)
	main.Licenses[0].License.ID = "Apache-2.0"
	main.Properties = []property{{"commit", r.commit}}
	for _, s := range built.Settings {
		main.Properties = append(main.Properties, property{"go:build:" + s.Key, s.Value})
	}
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1}
	b.Metadata = metadata{r.time.Format("2006-01-02T15:04:05Z"), main}
	b.Components = []component{goModule("library", "std", built.GoVersion)}
	for _, m := range built.Deps {
		c := goModule("library", m.Path, m.Version)
		c.Properties = []property{{"go.sum", m.Sum}}
		b.Components = append(b.Components, c)
	}
	all := dependency{Ref: main.Ref}
	for _, c := range b.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	return b
}

// goModule returns a Go module as a component. Its package URL escapes a + in the version.
func goModule(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}
