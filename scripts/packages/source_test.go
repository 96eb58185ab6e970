package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// hex unpacks a tarball for Hex as Hex does, and returns its folder and its metadata.
func hex(t *testing.T, name string) (dir, metadata string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	return dir, run(t, "", "escript", "hex.escript", "unpack", filepath.Join(dist, name+"-"+version+".tar"), dir)
}

// The tarballs for Hex compile; the Elixir one uses the Erlang one.
func TestHex(t *testing.T) {
	t.Parallel()
	erlang, _ := hex(t, "flake_client")
	run(t, erlang, "rebar3", "do", "compile,", "edoc")
	if _, err := os.Stat(filepath.Join(erlang, "doc/flake_client.html")); err != nil {
		t.Error(err)
	}
	elixir, metadata := hex(t, "flake_client_elixir")
	if want := `<<"requirement">> => <<"~> ` + version + `">>`; !strings.Contains(metadata, want) {
		t.Errorf("flake_client_elixir does not require %s:\n%s", want, metadata)
	}
	ebin := filepath.Join(erlang, "_build/default/lib/flake_client/ebin")
	run(t, elixir, "sh", "-c",
		`mkdir ebin && elixirc --warnings-as-errors -pa "$1" -o ebin $(find lib -name '*.ex' ! -name ecto_type.ex)`,
		"sh", ebin)
	output := run(t, elixir, "elixir", "-pa", ebin, "-pa", "ebin", "-e",
		`Mix.start(); Code.require_file("mix.exs")
		{:ok, _} = FlakeClient.start_link(nodes: [:in_process])
		IO.inspect({byte_size(FlakeClient.id!()), Mix.Project.config()[:deps]})`)
	if want := `{16, [flake_client: "~> ` + version + `"]}` + "\n"; output != want {
		t.Errorf("got %q, want %q", output, want)
	}
}

// npm installs the tarball, which contains what npm itself packs. Both kinds of modules run.
func TestNPM(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	tarball := filepath.Join(dist, "flake-client-"+version+".tgz")
	if err := os.WriteFile(filepath.Join(work, "package.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, work, "npm", "install", "--offline", "--no-audit", "--no-fund", tarball)
	for _, args := range [][]string{
		{"--input-type=module", "-e",
			"import { formats } from 'flake-client'; import FlakeId from 'flake-client/idgen'; " +
				"formats.flake.id(5n); new FlakeId().next()"},
		{"-e", "require('flake-client').formats.flake.id(5n); new (require('flake-client/idgen'))().next()"},
	} {
		run(t, work, "node", args...)
	}
	packed := filepath.Join(work, "packed")
	run(t, "", "cp", "-r", filepath.Join(source, "clients/javascript"), packed)
	run(t, "", "cp", filepath.Join(source, "LICENSE"), packed)
	run(t, packed, "npm", "pack", "--offline", "--silent")
	list := func(name string) string {
		return run(t, work, "sh", "-c", `tar -tzf "$1" | sort`, "sh", name)
	}
	if got, want := list(tarball), list(filepath.Join(packed, filepath.Base(tarball))); got != want {
		t.Errorf("the tarball contains\n%swant\n%s", got, want)
	}
}

// go install can install the command from what a proxy makes of a tag.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	m := module.Version{Path: "github.com/flake-go/flake", Version: "v0.0.0-test"}
	at := filepath.Join(work, "proxy", m.Path, "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	zipped, err := os.Create(filepath.Join(at, m.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.CreateFromVCS(zipped, m, source, "HEAD", ""); err != nil { // refuses what a proxy refuses
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mod), "\nreplace ") {
		t.Error("go.mod replaces modules, which go install refuses")
	}
	for name, text := range map[string]string{"list": m.Version + "\n", m.Version + ".mod": string(mod),
		m.Version + ".info": `{"Version": "` + m.Version + `", "Time": "2026-01-01T00:00:00Z"}`} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cache := strings.TrimSpace(run(t, "", "go", "env", "GOMODCACHE"))
	install := exec.Command("go", "install", "-trimpath", "-modcacherw", m.Path+"/rel/flake@latest")
	install.Dir = work
	install.Env = append(os.Environ(), "GOBIN="+work, "GOMODCACHE="+filepath.Join(work, "modules"),
		"CGO_ENABLED=0", "GOWORK=off",
		"GOPROXY=file://"+filepath.Join(work, "proxy")+",file://"+filepath.Join(cache, "cache/download"),
		"GOSUMDB=off", "GOFLAGS=")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", install, err, out)
	}
	if output := run(t, work, "./flake", "version"); !strings.HasPrefix(output, "flake 0.0.0-test\n") {
		t.Errorf("flake version prints %q", output)
	}
}
