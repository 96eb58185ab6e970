package docs

import (
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
	"github.com/flake-go/flake/internal/testenv"
)

// TestExamples runs the programs in the documents that get ids over HTTP without a client library.
// scripts/test installs Java, Python and Elixir, but not Ruby or PHP.
func TestExamples(t *testing.T) {
	server := httptest.NewServer(idhttptest.Door(t, "up"))
	defer server.Close()
	host, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	chapter := strings.NewReplacer("127.0.0.1:8465", net.JoinHostPort(host, port), `"127.0.0.1", 8465`,
		`"`+host+`", `+port)
	for _, c := range []struct {
		document, language, file string
		program                  string
		installed                bool
	}{
		{"clients.md", "python", "ids.py", "python3", true},
		{"clients.md", "java", "Ids.java", "java", true},
		{"clients.md", "ruby", "ids.rb", "ruby", false},
		{"clients.md", "php", "ids.php", "php", false},
		{"../clients/elixir/README.md", "elixir", "ids.exs", "elixir", true},
	} {
		t.Run(c.language, func(t *testing.T) {
			text, err := os.ReadFile(c.document)
			if err != nil {
				t.Fatal(err)
			}
			code := programOf(string(text), c.language)
			if code == "" {
				t.Fatalf("%s has no %s program that gets ids", c.document, c.language)
			}
			if _, err := exec.LookPath(c.program); err != nil && !c.installed {
				t.Skip(err)
			}
			testenv.Need(t, c.program)
			if c.language == "elixir" {
				code += "\nIO.puts(Enum.join(ids, \"\\n\"))\n"
			}
			file := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(file, []byte(chapter.Replace(code)), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), c.program, file).CombinedOutput()
			ids := strings.Fields(string(out))
			if err != nil || len(ids) != 3 {
				t.Fatalf("%v: %s", err, out)
			}
			for i, id := range ids {
				if _, err := flake.Parse(id); err != nil || i > 0 && id <= ids[i-1] {
					t.Errorf("got %q, want three ascending ids: %v", ids, err)
				}
			}
		})
	}
}

// programOf returns the first code block in a language that requests ids.
func programOf(document, language string) string {
	blocks := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(document, -1)
	for _, block := range blocks {
		if strings.Contains(block[1], "/v1/ids?n=") {
			return block[1]
		}
	}
	return ""
}
