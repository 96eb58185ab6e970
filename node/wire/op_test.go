package wire

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"strings"
	"testing"
	"unicode"
)

// The operations have the numbers in the documentation's list.
func TestOpNumbers(t *testing.T) {
	want := make(map[string]string)
	f, err := os.Open("testdata/ops.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, number, _ := strings.Cut(lines.Text(), "\t")
		want[name] = number
	}
	src, err := parser.ParseFile(token.NewFileSet(), "op.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	ast.Inspect(src, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			got[documented(v.Names[0].Name)] = v.Values[0].(*ast.BasicLit).Value
		}
		return true
	})
	for name, number := range want {
		if got[name] != number {
			t.Errorf("%s: %q, want %s", name, got[name], number)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// documented returns the name in the documentation: REG_SEND for OpRegSend.
func documented(name string) string {
	var b strings.Builder
	text := []rune(strings.TrimPrefix(name, "Op"))
	for i, c := range text {
		starts := i > 0 && unicode.IsUpper(c) && (!unicode.IsUpper(text[i-1]) || i+1 < len(text) && unicode.IsLower(text[i+1]))
		if starts {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}
