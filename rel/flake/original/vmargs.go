package original

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/internal/files"
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
	isFlag := func(arg string) bool { return strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "+") }
	for len(args) > 0 && args[0] != "-extra" {
		next := 1 + slices.IndexFunc(args[1:], isFlag)
		if next == 0 {
			next = len(args)
		}
		if err := s.takeFlag(from, args[0], args[1:next], seen); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		args = args[next:]
	}
	s.takeTLS(from, seen)
	return nil
}

// readArgs returns the arguments in a file and in the files that it names, at most *left files in all.
func readArgs(path string, left *int) (all []string, err error) {
	*left--
	data, _, err := files.Read(path, MaxFile)
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
			return nil, fmt.Errorf("%s: -args_file names no file, or there are more than %d files", path, maxFiles)
		}
		// Relative to the working directory, as in Erlang, or, failing that, to path.
		more, err := readArgs(existing(args[i], resolve(path, args[i])), left)
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
	for rest := text; ; {
		rest = strings.TrimLeft(rest, space)
		if rest == "" {
			return args, nil
		}
		if rest[0] == '#' {
			_, rest, _ = strings.Cut(rest, "\n")
			continue
		}
		var arg strings.Builder
		for rest != "" && !strings.Contains(space+"#", rest[:1]) {
			c := rest[0]
			rest = rest[1:]
			switch c {
			case '"', '\'':
				quoted, after, closed := strings.Cut(rest, string(rune(c)))
				if !closed {
					line := 1 + strings.Count(text[:len(text)-len(rest)], "\n")
					return nil, fmt.Errorf("line %d: a quote is not closed", line)
				}
				arg.WriteString(quoted)
				rest = after
			case '\\':
				arg.WriteString(rest[:min(1, len(rest))])
				rest = rest[min(1, len(rest)):]
			default:
				arg.WriteByte(c)
			}
		}
		args = append(args, arg.String())
	}
}

const space = " \t\n\v\f\r"

// reasons holds, for flags without an equivalent setting in this node, the reason that is reported.
var reasons = map[string]string{
	"-hidden":        "this node is hidden",
	"-config":        "name the file with -sys-config",
	"-start_epmd":    `this node starts EPMD unless one is running: set node.epmd to "off" or to another host's EPMD`,
	"-erl_epmd_port": "set node.listen to this port",
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
	case "--": // only ends the values of the flag before it
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
		s.report(what, why)
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
			why = "this node listens where node.listen says, or at all IPv4 and IPv6 addresses if it is not set"
		}
	default:
		// A name without a host means the machine that the original runs on, which may not be this one.
		if _, host, _ := strings.Cut(value, "@"); host == "" {
			why = "its host is missing: set node.name to what node() returns there, because callers use that name"
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

// serverOptions are the options of distribution over TLS that this node takes.
var serverOptions = []string{"server_cacertfile", "server_certfile", "server_fail_if_no_peer_cert", "server_keyfile",
	"server_verify"}

// addTLS passes the options of distribution over TLS to once: from the command line, where
// each option may have a separate flag, or from the file that the command line names.
func (s *Settings) addTLS(what, flag string, values []string, once func(name, value string) error) error {
	why := "no server option that this node supports"
	add := func(name, value string) error {
		if !slices.Contains(serverOptions, name) {
			return nil
		}
		why = ""
		return once(name, value)
	}
	if flag == "-ssl_dist_opt" {
		for ; len(values) > 1; values = values[2:] {
			what += " " + values[0]
			if err := add(values[0], values[1]); err != nil {
				return err
			}
		}
	} else {
		for _, name := range values {
			what += " " + name
			if err := addFile(name, add); err != nil {
				return fmt.Errorf("%s %s: %w", flag, name, err)
			}
		}
	}
	s.report(what, why)
	return nil
}

// addFile passes the server's options in a file to add. The file contains
// [{server, Options}, {client, Options}].
func addFile(path string, add func(name, value string) error) error {
	term, err := readTerm(path)
	if err != nil {
		return err
	}
	sides, _ := etf.Elements(term)
	for _, side := range sides {
		side, _ := side.(etf.Tuple)
		if len(side) != 2 || side[0] != etf.Atom("server") {
			continue
		}
		list, _ := etf.Elements(side[1])
		for _, option := range list {
			pair, _ := option.(etf.Tuple)
			if len(pair) != 2 {
				continue
			}
			name, _ := pair[0].(etf.Atom)
			value, _ := text(pair[1])
			if atom, ok := pair[1].(etf.Atom); ok {
				value = string(atom)
			}
			if err := add("server_"+string(name), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeTLS sets s.TLS from the options that addTLS found, and reports what differs here.
func (s *Settings) takeTLS(from string, options map[string]string) {
	s.TLS.Cert, s.TLS.CA = options["server_certfile"], options["server_cacertfile"]
	s.TLS.Key = cmp.Or(options["server_keyfile"], s.TLS.Cert) // if there is no key file, Cert contains both
	s.TLS.Verify = config.VerifyPeer
	if s.TLS.Cert != "" && options["server_verify"] != "verify_peer" {
		s.TLS.Verify = config.VerifyNone
	}
	switch {
	case !s.TLS.On:
	case s.TLS.Cert == "":
		s.report(from+": -proto_dist", "it has no server certificate: fill in [node.tls]")
	case s.TLS.Verify == config.VerifyPeer && options["server_fail_if_no_peer_cert"] != "true":
		s.report(from+": verify_peer without fail_if_no_peer_cert", "here other nodes must show a certificate")
	}
}
