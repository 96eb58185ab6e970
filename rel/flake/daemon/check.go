package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/output"
	"github.com/flake-go/flake/rel/flake/setup"
)

// CheckConfig shows what would run, and checks as much of the configuration as it can. It changes no
// file, takes no lock and makes no connection, because a node with the same configuration may be
// running.
func CheckConfig(load func() (config.Config, error), stdout, stderr io.Writer) error {
	cfg, err := load()
	if err != nil {
		return err
	}
	lines := output.OpenLog(cfg.Log, stderr)
	defer lines.Close()
	warnOf(cfg, lines.Logger)
	showValues(stdout, cfg.Values())
	path, err := checkTimestamp(cfg.Flake)
	told, workersErr := setup.Check(cfg, path, lines.Logger)
	s, settingsErr := readSettings(cfg, lines.Logger)
	s.warnOfCertificates(lines.Logger)
	if err := errors.Join(settingsErr, err, workersErr); err != nil {
		return cli.UsageError(err)
	}
	fmt.Fprintf(stdout, "\n# %s would hand out ids\n", cfg.Node.Name)
	for _, line := range told {
		fmt.Fprintf(stdout, "#   %s\n", line)
	}
	fmt.Fprintf(stdout, "#   timestamp  %s\n", path)
	return nil
}

// showValues writes the values in the form of a configuration file, each with its source.
func showValues(w io.Writer, values []config.Value) {
	table := ""
	for _, v := range values {
		dot := strings.LastIndexByte(v.Key, '.')
		if name := v.Key[:dot]; name != table {
			if table != "" {
				fmt.Fprintln(w)
			}
			table = name
			if strings.HasPrefix(name, "generator[") {
				name = "[generator]"
			}
			fmt.Fprintf(w, "[%s]\n", name)
		}
		fmt.Fprintf(w, "%s = %s  # %s\n", v.Key[dot+1:], v.Text, cmp.Or(v.From, "default"))
	}
}

// checkTimestamp returns the path of the file of marks and checks the file. The directory of the
// default path need not exist yet.
func checkTimestamp(cfg config.Flake) (path string, err error) {
	if path = cfg.TimestampPath; path == "" {
		if path, err = cli.DefaultTimestamp(); err != nil {
			return "", err
		}
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
	}
	return path, flake.CheckMarks(path)
}
