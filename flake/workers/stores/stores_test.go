package stores

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Only the packages of stores, and this one, know which stores there are.
func TestNamedOnlyHere(t *testing.T) {
	name := regexp.MustCompile(`\b(` + strings.Join(Names(), "|") + `)\b`)
	const root = "../../.."
	knows := []string{".git", "flake/workers", "scripts"}
	read := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		inside, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(knows, inside) || d.Name() == "node_modules"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if found := name.FindString(string(text)); found != "" {
			t.Errorf("%s names %s", inside, found)
		}
		read++
		return err
	})
	if err != nil || read == 0 {
		t.Errorf("%d files were read, %v", read, err)
	}
}

// Names in Kubernetes are those that its API server accepts: a label, and a subdomain (RFC 1123).
func TestObjectNames(t *testing.T) {
	long := strings.Repeat("a", 253)
	for _, test := range []struct {
		text            string
		namespace, name bool
	}{
		{"ids", true, true}, {"9-a", true, true}, {"a", true, true}, {long[:63], true, true},
		{long[:64], false, true}, {"a.b", false, true}, {long, false, true}, {long + "a", false, false},
		{"", false, false}, {"-a", false, false}, {"a-", false, false}, {".a", false, false}, {"A", false, false},
		{"a_b", false, false}, {"a\n", false, false},
	} {
		namespace, name := KeyOf("kubernetes.namespace").Valid(test.text), KeyOf("kubernetes.name").Valid(test.text)
		if namespace != test.namespace || name != test.name {
			t.Errorf("%q: %v, %v", test.text, namespace, name)
		}
	}
}
