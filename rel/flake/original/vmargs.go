package original

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/node/etf"
)

// maxFiles limits the number of argument files, because each file may name others.
const maxFiles = 16

// ReadVMArgs reads a vm.args, or another file of arguments for erl, into s, with the files that its -args_file
// flags name. It fails if a setting is set to two values, or if the file is a template, like vm.args.src.
func ReadVMArgs(path string, s *Settings) error {
	left := maxFiles
	args, err := readArgs(path, &left)
	if err != nil {
		return err
	}
	from := filepath.Base(path)
	seen := map[string]string{}
	for flag, values := range flags(args) {
		if flag == "-extra" {
			break
		}
		if err := s.takeFlag(from, flag, values, seen); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	s.takeTLS(from, seen)
	return nil
}

// readArgs returns the arguments in a file and in the files that it names, of which there may be at most *left.
func readArgs(path string, left *int) (all []string, err error) {
	*left--
	data, _, err := config.ReadFile(path, MaxFile)
	var args []string
	if err == nil {
		args, err = splitArgs(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := 0; i < len(args); i++ {
		if args[i] != "-args_file" {
			all = append(all, args[i])
			continue
		}
		if i++; i == len(args) || *left == 0 {
			return nil, fmt.Errorf("%s: -args_file names no file, or one of too many", path)
		}
		// Relative to the working directory or, failing that, to path, as in Erlang.
		more, err := readArgs(existing(args[i], beside(path, args[i])), left)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

var template = regexp.MustCompile(`\{\{ *[A-Za-z_][A-Za-z0-9_.]* *\}\}`)

// splitArgs splits text as erl does: at white space that is not quoted or escaped. It drops comments.
func splitArgs(text string) (args []string, err error) {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if found := variable.FindString(line) + template.FindString(line); found != "" {
			return nil, unset(i+1, found)
		}
	}
	for i := 0; ; {
		i += len(text[i:]) - len(strings.TrimLeft(text[i:], space))
		switch {
		case i == len(text):
			return args, nil
		case text[i] == '#':
			i += len(text[i:]) - len(strings.TrimLeftFunc(text[i:], func(r rune) bool { return r != '\n' }))
			continue
		}
		var arg strings.Builder
		for i < len(text) && !strings.Contains(space+"#", text[i:i+1]) {
			c := text[i]
			i++
			switch c {
			case '"', '\'':
				end := strings.IndexByte(text[i:], c)
				if end < 0 {
					return nil, fmt.Errorf("line %d: a quote is not closed", 1+strings.Count(text[:i], "\n"))
				}
				arg.WriteString(text[i : i+end])
				i += end + 1
			case '\\':
				if i < len(text) {
					arg.WriteByte(text[i])
					i++
				}
			default:
				arg.WriteByte(c)
			}
		}
		args = append(args, arg.String())
	}
}

const space = " \t\n\v\f\r"

// flags yields each flag in args, with the values that follow it.
func flags(args []string) func(yield func(string, []string) bool) {
	isFlag := func(arg string) bool { return strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "+") }
	return func(yield func(string, []string) bool) {
		for len(args) > 0 {
			next := 1 + slices.IndexFunc(args[1:], isFlag)
			if next == 0 {
				next = len(args)
			}
			if !yield(args[0], args[1:next]) {
				return
			}
			args = args[next:]
		}
	}
}

// reasons holds the reason that is reported for each flag that this node has no setting for.
var reasons = map[string]string{
	"--":             "",
	"-hidden":        "this node is hidden",
	"-config":        "name the file with -sys-config",
	"-start_epmd":    `this node starts EPMD unless one runs: set node.epmd to "off" or to that of another host`,
	"-erl_epmd_port": "set node.listen to it",
	"-heart":         "systemd or a container restarts this node",
	"-noinput":       "this node has this flag too",
	"-noshell":       "this node has -noinput",
	"-boot":          "for the Erlang VM",
	"-mode":          "for the Erlang VM",
	"-pa":            "for the Erlang VM",
	"-smp":           "for the Erlang VM",
}

// takeFlag takes a flag with its values. seen holds the values taken so far, by setting.
func (s *Settings) takeFlag(from, flag string, values []string, seen map[string]string) error {
	what := from + ": " + flag
	once := func(key, now string) error {
		if before, ok := seen[key]; ok && before != now {
			return fmt.Errorf("%s is set twice with different values: remove one", key)
		}
		seen[key] = now
		return nil
	}
	switch flag {
	case "-name", "-sname", "-setcookie", "-proto_dist":
		if len(values) != 1 {
			s.report(what, fmt.Sprintf("with %d values", len(values)))
			return nil
		}
		if err := once(strings.Replace(flag, "-sname", "-name", 1), values[0]); err != nil {
			return err
		}
		s.takeDist(from, flag, values[0])
	case "-ssl_dist_opt", "-ssl_dist_optfile":
		return s.addTLS(what, flag, values, once)
	case "-env":
		name, why := strings.Join(values[:min(len(values), 1)], ""), "for the Erlang VM"
		if name == "ERL_EPMD_PORT" {
			why = "set it in the environment of this node too"
		}
		s.report(what+" "+name, why)
	default:
		app := strings.TrimPrefix(flag, "-")
		if slices.Contains(known, app) {
			return s.takeArgs(from, app, values, once)
		}
		why, ok := reasons[flag]
		switch {
		case strings.HasPrefix(flag, "+"):
			why = "for the Erlang VM"
		case !ok:
			why = unlike
		}
		if why != "" {
			s.report(what, why)
		}
	}
	return nil
}

func (s *Settings) takeDist(from, flag, value string) {
	what, why := fmt.Sprintf("%s: %s %s", from, flag, value), ""
	switch flag {
	case "-setcookie":
		s.Cookie, what = value, from+": -setcookie (hidden)"
	case "-proto_dist":
		if s.TLS.On = strings.HasSuffix(value, "_tls"); !s.TLS.On {
			why = "this node listens where node.listen says, at all addresses of IPv4 and IPv6 unless it is set"
		}
	default:
		// A name without a host means the machine that the original runs on, which may not be this one.
		if _, host, _ := strings.Cut(value, "@"); host == "" {
			why = "its host is missing: set node.name to what node() says there, which callers name"
		} else {
			s.Name = value
		}
	}
	s.report(what, why)
}

// takeArgs takes values, which are alternating keys and values of an application, each an Erlang term.
func (s *Settings) takeArgs(from, app string, values []string, once func(key, value string) error) error {
	for ; len(values) > 1; values = values[2:] {
		key, err := termOf(values[0])
		if err != nil {
			return fmt.Errorf("-%s %q: %w", app, values[0], err)
		}
		value, err := termOf(values[1])
		if err != nil {
			return fmt.Errorf("-%s %s: its value: %w", app, values[0], err)
		}
		if err := once("-"+app+" "+values[0], values[1]); err != nil {
			return err
		}
		s.takeKey(from, app, key, value)
	}
	if len(values) > 0 {
		s.report(fmt.Sprintf("%s: -%s %s", from, app, values[0]), "it has no value")
	}
	return nil
}

func termOf(value string) (etf.Term, error) {
	term, rest, err := parseTerm(value + ".")
	if strings.TrimSpace(rest) != "" {
		err = errors.New("more than one term")
	}
	return term, err
}
