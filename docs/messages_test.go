package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMessages wants a paragraph for each message that an operator may meet, and no other:
//
//   - each line that the packages of the command log as a warning or an error,
//   - each error of the packages that a start goes through that says what to do, behind a
//     semicolon, or what is wanted; not those that refer to flake help,
//   - each exported sentinel error of those packages,
//   - each advice on an error of etcd.
//
// A paragraph begins with the message in bold. That of an error ends at its semicolon, and
// has "..." where the error has something of its own.
func TestMessages(t *testing.T) {
	said := ofCode(t)
	told := ofGuide(t)
	for message, at := range said {
		if told[message] == "" {
			t.Errorf("%s: no paragraph in %s tells of\n**`%s`**", at, guide, message)
		}
	}
	for message, page := range told {
		if said[message] == "" {
			t.Errorf("%s: nothing says\n**`%s`**", page, message)
		}
	}
}

func TestMessagesFinds(t *testing.T) {
	const code = `package x
		const prefix = "gone: "
		var (
			ErrGone  = errors.New("flake: it is gone")
			errOther = errors.New("not told")
			advices  = []advice{{"by whom ", "ask them"}}
		)
		func f() error {
			log.Info("not told")
			log.Warn(prefix+"it was here", "at", at)
			slog.ErrorContext(ctx, "worse")
			l.Log(ctx, slog.LevelError, "worst")
			log.Error(err.Error())
			errors.Join(fmt.Errorf("not told: %w", err), fmt.Errorf("%w; %s", err, help), fmt.Errorf("odd; see flake help"))
			return fmt.Errorf("flake: %q: %s has it: %w; set another", a, b, err)
		}`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "x.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := newSource(set)
	p.add(file)
	for started, want := range map[bool][]string{
		true:  {"it is gone", "by whom", "gone: it was here", "worse", "worst", "", "has it"},
		false: {"gone: it was here", "worse", "worst", ""},
	} {
		var got []string
		p.messages(file, started, func(message string, _ ast.Node) { got = append(got, message) })
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// starts are the packages that a start goes through. Those of the configuration say all in
// one form.
var starts = []string{"flake", "flake/internal/durable", "flake/internal/mark", "flake/internal/tick", "flake/sno", "flake/snowflake", "flake/workers",
	"flake/workers/etcd", "idserver", "node", "node/certs", "node/epmd", "node/reserve", "rel/flake"}

// notTold are errors that need no paragraph: only a program that uses the library can have
// them, or they say all about how a command was called.
var notTold = []string{
	"the ids of this moment are used up",
	"a generator that nothing made: use NewGenerator or Open",
	"all 65536 partitions are given out in this process: set them",
	"flake workers: no argument wanted, release NUMBER, after-restore, or withdraw",
	"ids wanted, or - for those of standard input",
	"-until ...: a time such as 2026-01-31T12:00:00Z wanted",
	"either -config or ... wanted",
	"which shell? bash, zsh or fish wanted",
	"which dets file? -dets FILE wanted, or a -sys-config that names it",
	"-out ...: it is there",
	"over HTTP, -url wanted, or http.listen with a port in the configuration",
	"http.tls.cert ...: PEM wanted",
}

// ofCode returns the messages in the code, and where they are.
func ofCode(t *testing.T) map[string]string {
	t.Helper()
	imports, err := os.ReadFile("../scripts/imports.txt")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, dir := range closure("rel/flake", string(imports)) {
		p := parsePackage(t, dir)
		for _, file := range p.files {
			p.messages(file, slices.Contains(starts, dir), func(message string, n ast.Node) {
				at := p.set.Position(n.Pos()).String()
				if message == "" {
					t.Errorf("%s: the message of a log line is no constant: make it one, and what differs attributes", at)
					return
				}
				said[message] = at
			})
		}
	}
	for _, message := range notTold {
		if said[message] == "" {
			t.Errorf("nothing says %q: take it from notTold", message)
		}
		delete(said, message)
	}
	return said
}

// messages tells of all messages in a file; "" is one that is no constant. Of errors there
// are some only if a start goes through the package.
func (p *source) messages(file *ast.File, started bool, say func(message string, n ast.Node)) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if e := logged(n); e != nil {
				message, ok := p.text(e)
				if !ok {
					message = ""
				}
				say(message, n)
			}
			if message, ok := p.text(failed(n)); ok && started && advising(message) && normal(message) != "..." {
				say(normal(message), n)
			}
		case *ast.ValueSpec:
			if started {
				p.sentinels(n, func(message string) { say(normal(message), n) })
			}
		}
		return true
	})
}

// closure returns a package and all of the module that it needs.
func closure(root, imports string) []string {
	all := []string{root}
	for i := 0; i < len(all); i++ {
		for line := range strings.Lines(imports) {
			if from, to, _ := strings.Cut(strings.TrimSpace(line), " "); from == all[i] && !slices.Contains(all, to) {
				all = append(all, to)
			}
		}
	}
	return all
}

// source is a package's code, without tests.
type source struct {
	set    *token.FileSet
	files  []*ast.File
	consts map[string]ast.Expr
}

func newSource(set *token.FileSet) *source {
	return &source{set: set, consts: map[string]ast.Expr{}}
}

func parsePackage(t *testing.T, dir string) *source {
	t.Helper()
	p := newSource(token.NewFileSet())
	names, err := filepath.Glob("../" + dir + "/*.go")
	if err != nil || len(names) == 0 {
		t.Fatal(dir, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(p.set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.add(file)
	}
	return p
}

// add adds a file, and its constants.
func (p *source) add(file *ast.File) {
	p.files = append(p.files, file)
	ast.Inspect(file, func(n ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				s := s.(*ast.ValueSpec)
				for i := range s.Values {
					p.consts[s.Names[i].Name] = s.Values[i]
				}
			}
		}
		return true
	})
}

// text returns the value of a constant text.
func (p *source) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		x, ok := p.text(e.X)
		y, ok2 := p.text(e.Y)
		return x + y, ok && ok2
	case *ast.Ident:
		return p.text(p.consts[e.Name])
	}
	return "", false
}

// logged returns the message of a call that logs a warning or an error, else nil.
func logged(c *ast.CallExpr) ast.Expr {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	switch {
	case (f.Sel.Name == "Warn" || f.Sel.Name == "Error") && len(c.Args) > 0:
		return c.Args[0]
	case (f.Sel.Name == "WarnContext" || f.Sel.Name == "ErrorContext") && len(c.Args) > 1:
		return c.Args[1]
	case (f.Sel.Name == "Log" || f.Sel.Name == "LogAttrs") && len(c.Args) > 2:
		return c.Args[2]
	}
	return nil
}

// failed returns the text of a call that makes an error, else nil.
func failed(c *ast.CallExpr) ast.Expr {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) == 0 {
		return nil
	}
	if x, ok := f.X.(*ast.Ident); ok && (x.Name == "errors" && f.Sel.Name == "New" || x.Name == "fmt" && f.Sel.Name == "Errorf") {
		return c.Args[0]
	}
	return nil
}

// sentinels tells of exported errors, and of advices.
func (p *source) sentinels(s *ast.ValueSpec, say func(message string)) {
	for i, value := range s.Values {
		switch value := value.(type) {
		case *ast.CallExpr:
			if message, ok := p.text(failed(value)); ok && strings.HasPrefix(s.Names[i].Name, "Err") {
				say(message)
			}
		case *ast.CompositeLit:
			for _, advice := range value.Elts {
				if a, ok := advice.(*ast.CompositeLit); ok && s.Names[i].Name == "advices" {
					if message, ok := p.text(a.Elts[0]); ok {
						say(message)
					}
				}
			}
		}
	}
}

// advising reports whether an error says what to do.
func advising(message string) bool {
	if strings.Contains(message, "flake help") {
		return false
	}
	return strings.Contains(message, "; ") || strings.HasSuffix(message, " wanted") || strings.Contains(message, " wanted,") || strings.Contains(message, " wanted:")
}

var verb = regexp.MustCompile(`%[#+0-9.]*[a-zA-Z]`)

// normal returns the text of an error as the guide has it.
func normal(message string) string {
	message, _, _ = strings.Cut(strings.TrimPrefix(message, "flake: "), "; ")
	message = verb.ReplaceAllString(message, "...")
	for _, own := range []string{"...: ", "... "} {
		message = strings.TrimPrefix(message, own)
	}
	return strings.TrimSuffix(strings.TrimSpace(message), ": ...")
}

var (
	headed = regexp.MustCompile("(?ms)^\\*\\*`.*?(?:\n\n|\\z)")
	bold   = regexp.MustCompile("(?s)\\*\\*`([^`]+)`\\*\\*")
)

// ofGuide returns the messages that paragraphs of the guide begin with, and their pages.
func ofGuide(t *testing.T) map[string]string {
	t.Helper()
	told := map[string]string{}
	for _, page := range chapters(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, paragraph := range headed.FindAllString(string(text), -1) {
			for _, m := range bold.FindAllStringSubmatch(paragraph, -1) {
				message := strings.Join(strings.Fields(m[1]), " ")
				if told[message] != "" {
					t.Errorf("%s: a second paragraph begins with\n**`%s`**", page, message)
				}
				told[message] = page
			}
		}
	}
	return told
}
