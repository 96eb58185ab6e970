package original

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/flake-go/flake/internal/files"
	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// ReadSysConfig reads a sys.config, and the files that it names, into s. It fails if the file is not a single
// list of applications and file names, or is a template that a script must first fill in, like sys.config.src.
func ReadSysConfig(path string, s *Settings) error { return readSysConfig(path, s, true) }

func readSysConfig(path string, s *Settings, include bool) error {
	term, err := readTerm(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	entries, ok := etf.Elements(term)
	if !ok {
		return fmt.Errorf("%s: must be a list, as in [{flake, [{interface, \"eth0\"}]}]", path)
	}
	from := filepath.Base(path)
	for _, entry := range entries {
		name, isText := text(entry)
		pair, _ := entry.(etf.Tuple)
		var app etf.Atom
		if len(pair) == 2 {
			app, _ = pair[0].(etf.Atom)
		}
		switch {
		case app != "":
			s.TakeEnv(from, string(app), pair[1])
		case isText && include:
			// Relative to path or, failing that, to the working directory, as in Erlang.
			name = strings.TrimSuffix(name, ".config") + ".config"
			err = readSysConfig(existing(resolve(path, name), name), s, false)
		case isText:
			s.report(fmt.Sprintf("%s: the file %q", from, name), "Erlang does not read files named there")
		default:
			return fmt.Errorf("%s: %.60s is neither an application with a list of keys nor a file name",
				path, etf.Format(nil, entry))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resolve returns the path of the file that the file at path names. A relative name is relative to path's directory.
func resolve(path, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(path), name)
}

// existing returns first if that file exists, otherwise second.
func existing(first, second string) string {
	if _, err := os.Stat(first); err != nil {
		return second
	}
	return first
}

// readTerm reads a file that contains exactly one term.
func readTerm(path string) (etf.Term, error) {
	data, _, err := files.Read(path, MaxFile)
	if err != nil {
		return nil, err
	}
	text, err := decoded(data)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(text, "\n") {
		if found := variable.FindString(line); found != "" && !strings.HasPrefix(strings.TrimSpace(line), "%") {
			return nil, unset(i+1, found)
		}
	}
	term, rest, err := parseTerm(text)
	if more, _, moreErr := erltext.Parse(rest); len(more) > 0 || moreErr != nil {
		err = errors.New("unexpected text after its term")
	}
	return term, err
}

// parseTerm reads one term, up to its full stop, and returns the text after it.
func parseTerm(text string) (etf.Term, string, error) {
	exprs, rest, err := erltext.Parse(text)
	if err != nil {
		return nil, "", fmt.Errorf("not an Erlang term: %w", err)
	}
	if len(exprs) == 1 {
		if literal, ok := exprs[0].(*erltext.Literal); ok {
			return literal.Term, rest, nil
		}
	}
	return nil, "", errors.New("must be one Erlang term with a full stop, without variables, matches or calls")
}

// variable matches what a script replaces when it generates sys.config or vm.args from a .src file.
var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`)

func unset(line int, found string) error {
	return fmt.Errorf("line %d: %.60s stands for a variable: use the file that the release's start "+
		"script generates from this one", line, found)
}

var latin1 = regexp.MustCompile(`^(?:[^\n]*\n)?\s*%[^\n]*coding[:=]\s*(?i:latin-1|iso-8859-1)`)

// decoded returns the text of a file of Erlang terms, which is UTF-8 unless a comment in its
// first two lines says latin-1.
func decoded(data string) (string, error) {
	switch {
	case latin1.MatchString(data):
		return fromLatin1(data), nil
	case !utf8.ValidString(data):
		return "", errors.New("not UTF-8, and no comment says %% coding: latin-1")
	}
	return strings.TrimPrefix(data, "\ufeff"), nil
}

// fromLatin1 returns the text of Latin-1 bytes, each of which stands for a character.
func fromLatin1(data string) string {
	runes := make([]rune, len(data))
	for i := range len(data) {
		runes[i] = rune(data[i])
	}
	return string(runes)
}

// text returns an Erlang string: a list of characters, which must not be empty.
func text(t etf.Term) (string, bool) {
	if s, ok := t.(etf.String); ok {
		return fromLatin1(string(s)), true
	}
	list, _ := t.(etf.List)
	if len(list) == 0 {
		return "", false
	}
	var b strings.Builder
	for _, e := range list {
		c, ok := e.(int64)
		if !ok || c != int64(rune(c)) || !utf8.ValidRune(rune(c)) {
			return "", false
		}
		b.WriteRune(rune(c))
	}
	return b.String(), true
}
