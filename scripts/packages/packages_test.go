package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// What scripts/release makes from this tree, for Linux on this machine's processor.
var (
	source  string // a repository that holds this tree
	dist    string // the packages
	version string
	debian  string // the deb package
	arch    = runtime.GOARCH
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	work, err := os.MkdirTemp("", "packages-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(work)
	source, dist = filepath.Join(work, "source"), filepath.Join(work, "dist")
	out, err := exec.Command("bash", "-c", `set -eu
cd ../..
mkdir "$1"
git ls-files -z --cached --others --exclude-standard --deduplicate |
	while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
	tar -c --null -T - | tar -x -C "$1"
cd "$1"
git init -q
git add -A
git -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false commit -qm tree
version=$(sed -n 's/^  @version "\(.*\)"$/\1/p' clients/elixir/mix.exs)
scripts/release -out "$2" -platforms "linux/$3" "$version"
echo "version=$version"`, "bash", source, dist, arch).CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "scripts/release: %v\n%s", err, out)
		return 1
	}
	version = string(regexp.MustCompile(`version=(.*)\n$`).FindSubmatch(out)[1])
	debian = filepath.Join(dist, fmt.Sprintf("flake_%s-1_%s.deb", strings.Replace(version, "-", "~", 1), arch))
	return m.Run()
}

// run runs a command that must succeed, and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", c, err, out)
	}
	return string(out)
}

func TestSums(t *testing.T) {
	t.Parallel()
	output := run(t, dist, "sha256sum", "-c", "SHA256SUMS")
	files, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(output, ": OK\n"), len(files)-1; got != want || want < 6 {
		t.Errorf("%d checksums of %d files, want one each and at least 6:\n%s", got, want, output)
	}
}

// The archive contains the command and the files that belong to it.
func TestArchive(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("flake-%s-linux-%s", version, arch)
	f, err := os.Open(filepath.Join(dist, name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "alerts.yml", "completions/_flake",
		"completions/flake.bash",
		"completions/flake.fish", "flake", "grafana.json", "ids.sql", "man/flake.1", "sys.toml"}
	for tarred := tar.NewReader(unzipped); ; want = want[1:] {
		h, err := tarred.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(want) == 0 || h.Name != name+"/"+want[0] || h.Size == 0 || h.Uname != "root" {
			t.Fatalf("got file %s of user %s with %d bytes, want %q", h.Name, h.Uname, h.Size, want)
		}
	}
	if len(want) > 0 {
		t.Errorf("not in the archive: %q", want)
	}
}

// lintian and rpmlint find no faults.
func TestLint(t *testing.T) {
	t.Parallel()
	rpm, _ := filepath.Glob(filepath.Join(dist, "*.rpm"))
	if len(rpm) != 1 {
		t.Fatalf("found rpm packages %q, want one", rpm)
	}
	run(t, "", "./rpmlint", rpm[0])
	if output := run(t, "", "rpm", "-qip", rpm[0]); !strings.Contains(output, "License     : Apache-2.0") {
		t.Errorf("rpm -qip:\n%s", output)
	}
	run(t, "", "lintian", "--allow-root", "--fail-on", "error,warning", debian)
}

// The command in the deb starts with the deb's configuration, and hands out an id.
func TestStart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	run(t, "", "dpkg-deb", "-x", debian, root)
	flake := filepath.Join(root, "usr/bin/flake")
	if binary, err := elf.Open(flake); err != nil {
		t.Error(err)
	} else if libs, err := binary.ImportedLibraries(); len(libs) > 0 || err != nil {
		t.Errorf("the command needs libraries %q, want none: %v", libs, err)
	}
	commit := strings.TrimSpace(run(t, source, "git", "rev-parse", "HEAD"))
	if output := run(t, "", flake, "version"); !strings.HasPrefix(output, "flake "+version+"\ncommit "+commit+"\n") {
		t.Errorf("flake version prints %q", output)
	}
	if err := os.Mkdir(filepath.Join(root, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	cookie := filepath.Join(root, "etc/flake/cookie")
	if err := os.WriteFile(cookie, []byte("deb"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := exec.Command(flake, "-noinput", "-config", filepath.Join(root, "etc/flake/sys.toml"))
	node.Env = append(os.Environ(), "FLAKE_NODE_COOKIE_FILE="+cookie, "FLAKE_NODE_EPMD=off",
		"FLAKE_HTTP_LISTEN=127.0.0.1:0",
		"FLAKE_WORKER_ID=random", "FLAKE_TIMESTAMP_PATH="+filepath.Join(root, "state/timestamp"))
	node.Stderr = os.Stderr
	output, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Process.Kill() }) // unless it has stopped
	url := ""
	lines := bufio.NewScanner(output)
	for url == "" && lines.Scan() {
		if found := regexp.MustCompile(`http://[0-9.:]+/`).FindString(lines.Text()); found != "" {
			url = found
		}
	}
	if url == "" {
		t.Fatalf("the node exited without printing a URL: %v", node.Wait())
	}
	reply, err := http.Get(url + "v1/ids")
	if err != nil {
		t.Fatal(err)
	}
	id, err := io.ReadAll(reply.Body)
	reply.Body.Close()
	if err != nil || !regexp.MustCompile(`^[0-9A-Za-z]{22}\n?$`).Match(id) {
		t.Errorf("GET /v1/ids returned %q, %v", id, err)
	}
	node.Process.Signal(syscall.SIGTERM)
	io.Copy(io.Discard, output)
	if err := node.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// Each installation script creates a cookie of one line.
func TestCookie(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"deb/postinst", "rpm/post"} {
		text, err := os.ReadFile("../../rel/packages/" + script)
		if err != nil {
			t.Fatal(err)
		}
		_, commands, _ := strings.Cut(string(text), "if [ ! -e /etc/flake/cookie ]; then\n")
		commands, _, _ = strings.Cut(commands, "\nfi\n")
		dir := t.TempDir()
		run(t, "", "sh", "-ec", "chown() { :; }\n"+strings.ReplaceAll(commands, "/etc/flake", dir))
		cookie, err := os.ReadFile(filepath.Join(dir, "cookie"))
		if err != nil || !regexp.MustCompile(`^[0-9a-f]{40}\n$`).Match(cookie) {
			t.Errorf("%s wrote the cookie %q, want 40 hexadecimal digits and a newline: %v", script, cookie, err)
		}
	}
}

// systemd accepts the unit, and rates its exposure below 2.
func TestUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../rel/systemd/flake.service")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	run(t, "", "dpkg-deb", "-x", debian, root)
	unit := filepath.Join(root, "flake.service")
	text = []byte(strings.ReplaceAll(string(text), "/usr/bin/flake", filepath.Join(root, "usr/bin/flake")))
	if err := os.WriteFile(unit, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if output := run(t, "", "systemd-analyze", "verify", "--man=no", unit); output != "" {
		t.Error(output)
	}
	run(t, "", "systemd-analyze", "security", "--offline=true", "--threshold=20", unit) // in tenths
}

// The bill of materials lists the modules that the command was built from, as Go reports them.
func TestBOM(t *testing.T) {
	t.Parallel()
	text, err := os.Open(filepath.Join(dist, fmt.Sprintf("flake-%s-linux-%s.cdx.json", version, arch)))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	var b cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(text, cyclonedx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	run(t, "", "dpkg-deb", "-x", debian, root)
	built := run(t, "", "go", "version", "-m", filepath.Join(root, "usr/bin/flake"))
	listed := regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(built, -1)
	if len(*b.Components) != len(listed)+1 || len(listed) < 4 {
		t.Fatalf("the bill lists %d components, want one more than the modules of the command, which are %d and must be "+
			"at least 4", len(*b.Components), len(listed))
	}
	for i, m := range listed {
		if c := (*b.Components)[i+1]; c.Name != m[1] || c.Version != m[2] {
			t.Errorf("a component is %s %s, want %s %s", c.Name, c.Version, m[1], m[2])
		}
	}
	if c := b.Metadata.Component; c.Version != "v"+version ||
		!strings.Contains(run(t, root, "sha256sum", "usr/bin/flake"), (*c.Hashes)[0].Value) {
		t.Errorf("the component is %+v", c)
	}
}
