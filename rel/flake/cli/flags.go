// Package cli holds what the commands share: their flags, the configuration that the flags
// name, the signals that end the commands, and the version.
//
// Start at [Flags].
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flake-go/flake/config"
)

// Flags are the flags of a command. [usage.Command] describes the form of their help.
type Flags struct {
	*flag.FlagSet
	File      *string       // the -config flag, from Identify
	Before    []config.Flag // values that the environment and the flags override
	installed string        // see Identify
}

// Installed is the path of the configuration file that the deb and rpm packages install. Tests
// build commands with a different path.
var Installed = "/etc/flake/sys.toml"

// NewFlags returns an empty set of flags.
func NewFlags() *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet("", flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	return f
}

// Identify adds the flags that identify the node; most commands have them. If no flag names a node,
// the configuration file at installed does, if it exists. installed may be empty.
func (f *Flags) Identify(installed string) {
	f.installed = installed
	without := "the defaults apply"
	if installed != "" {
		without = installed + " is read, if it exists and neither -name nor -url is set"
	}
	f.File = f.String("config", "", "read the configuration from `FILE`; without it "+without)
	f.String("name", "", "node name, `name@host`")
	f.String("setcookie", "",
		"the `cookie` that callers must have; other users can see it in ps, so prefer FLAKE_COOKIE")
}

// ParseArgs parses args: flags, followed by at most maxArgs arguments.
func (f *Flags) ParseArgs(args []string, maxArgs int) error {
	err := f.Parse(args)
	if err == nil && f.NArg() > maxArgs {
		err = fmt.Errorf("unexpected argument %q", f.Arg(maxArgs))
	}
	if late := f.late(); late != "" {
		return UsageError(fmt.Errorf("%s must be before %q: flags go before arguments", late, f.Arg(0)))
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return UsageError(fmt.Errorf("%w; %s", err, f.names()))
}

// late returns the first flag after an argument, where Parse does not read flags, or "".
func (f *Flags) late() string {
	for _, arg := range f.Args()[min(1, f.NArg()):] {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if arg[:min(1, len(arg))] == "-" && f.Lookup(name) != nil {
			return "-" + name
		}
	}
	return ""
}

// Given returns the first of the named flags that was given, or "".
func (f *Flags) Given(names ...string) (first string) {
	f.Visit(func(set *flag.Flag) {
		if first == "" && slices.Contains(names, set.Name) {
			first = set.Name
		}
	})
	return first
}

// Load reads the configuration file that the flags name. The environment overrides the file,
// and the flags override both.
func (f *Flags) Load() (cfg config.Config, err error) {
	environ, err := config.Environ(os.Environ())
	if err != nil {
		return cfg, UsageError(err)
	}
	overrides := slices.Concat(f.Before, environ)
	named := slices.ContainsFunc(environ, func(set config.Flag) bool { return set.Key == "node.name" })
	for name, key := range map[string]string{"name": "node.name", "setcookie": "node.cookie"} {
		if f.Given(name) != "" {
			overrides = append(overrides, config.Flag{Name: "-" + name, Key: key, Value: f.Lookup(name).Value.String()})
		}
	}
	file := *f.File
	// The token in the installed file is only for the node configured there.
	if _, err := os.Stat(f.installed); err == nil && !named && f.Given("config", "name", "url") == "" {
		file = f.installed
	}
	if cfg, err = config.Load(file, overrides...); err != nil {
		if file != *f.File {
			err = fmt.Errorf("%w; this file is read because -config, -name and -url are not set", err)
			if errors.Is(err, fs.ErrPermission) {
				err = fmt.Errorf("%w: run flake as root or in group flake", err)
			}
		}
		return cfg, UsageError(err)
	}
	return cfg, nil
}

// WithConfig returns an action that reads the configuration and passes it to do.
func (f *Flags) WithConfig(do func(ctx context.Context, cfg config.Config, args []string,
	stdout, stderr io.Writer) error) Action {
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		cfg, err := f.Load()
		if err != nil {
			return err
		}
		return do(ctx, cfg, args, stdout, stderr)
	}
}

// names lists the flags: "flags are -config, -name, -noinput".
func (f *Flags) names() string {
	var names []string
	f.VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	if len(names) == 0 {
		return "the command has no flags"
	}
	return "flags are " + strings.Join(names, ", ")
}

// UsageError marks an error as caused by the flags, arguments or configuration.
func UsageError(err error) error { return usageError{err} }

type usageError struct{ error }

// IsUsageError reports whether an error is from [UsageError].
func IsUsageError(err error) bool { return errors.As(err, new(usageError)) }

// An Action runs a command. args are the arguments that are not flags.
type Action func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// TimestampPath returns the default path of the file of marks, and creates its directory,
// which only this user can write to.
func TimestampPath() (string, error) {
	path, err := DefaultTimestamp()
	if err != nil {
		return "", err
	}
	return path, createDir(path)
}

func createDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("flake.timestamp_path %s, the default: %w; set it to a file in a directory "+
			"that this user can write to", path, err)
	}
	return nil
}

// DefaultTimestamp returns the same path as TimestampPath, but creates nothing.
func DefaultTimestamp() (string, error) {
	state := "/var/lib" // where programs that run as root keep state across restarts (FHS 5.8)
	if os.Getuid() != 0 {
		state = os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(state) { // a relative path must be ignored (XDG Base Directory)
			home, err := os.UserHomeDir()
			if err != nil {
				return "", UsageError(errors.New("set flake.timestamp_path: neither XDG_STATE_HOME nor HOME is set"))
			}
			state = filepath.Join(home, ".local", "state")
		}
	}
	return filepath.Join(state, "flake", "timestamp"), nil
}
