package main

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

const ceiling = 65536 * 1000 // ids of the format flake per second

// singles holds the targets of benchmarks of one call, in nanoseconds.
var singles = map[string]float64{"Next": 45, "AppendBase62": 16, "ParseBase62": 22}

// lenient holds the targets of pairs in which our call checks more than theirs. The target of any
// other pair is 1.
var lenient = map[string]float64{
	"Pairs/snowflake.Base58.Parse/bwmarrin": 1.2, "Pairs/ulid.Parse/oklog": 1.2, "Pairs/sno.Parse/muyo": 1.5,
}

// ids runs benchmarks of package flake, and benchmarks that compare all formats with other
// libraries.
func ids(w *world, p plan) (rows []row, err error) {
	single, err1 := w.benchmark("flake", "^Benchmark(Next|AppendBase62|ParseBase62)$", "2ms", p.idRounds)
	bulk, err2 := w.benchmark("flake", "^BenchmarkNextN$//^size=(1|16|1024)$", "1048576x", p.bulkRounds)
	pairs, err3 := w.benchmark("flake/peertest", "^BenchmarkPairs$", "60x", 1)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	const section = "ids in process"
	for _, b := range single {
		rows = append(rows,
			row{Section: section, What: b.name, Unit: "ns", Ours: b.best["ns/op"]}.aim(oursAtMost(singles[b.name])),
			row{Section: section, What: b.name, Unit: "allocs", Ours: b.best["allocs/op"]}.aim(oursAtMost(0)))
	}
	for _, b := range bulk {
		r := compare(section, b.name, "ids/s", "the format's ceiling", []float64{ceiling}, []float64{1e9 / b.best["ns/op"]})
		if !strings.HasSuffix(b.name, "/size=1") {
			r = r.aim(atLeast(0.99))
		}
		rows = append(rows, r)
	}
	for _, b := range pairs {
		what := strings.TrimPrefix(b.name, "Pairs/")
		_, than, _ := strings.Cut(what, "/")
		minima, medians := b.best["of-minima"], b.best["of-medians"]
		rows = append(rows, row{Section: "compared with other libraries", What: what, Unit: "ns CPU", Than: than,
			Theirs: b.best["ns-theirs"], Ours: b.best["ns-ours"],
			Ratio: minima, Low: min(minima, medians), High: max(minima, medians),
		}.aim(atMost(cmp.Or(lenient[b.name], 1))))
	}
	return rows, nil
}

// A benchmark holds the best results of a benchmark, by unit.
type benchmark struct {
	name string
	best map[string]float64
}

var processors = regexp.MustCompile(`-\d+$`) // what go test appends to a benchmark's name

// benchmark runs the benchmarks of a package that match a pattern.
func (w *world) benchmark(dir, pattern, benchtime string, count int) (all []benchmark, err error) {
	cmd := exec.CommandContext(w.ctx, "go", "-C", filepath.Join(w.root, dir), "test", "-run", "^$",
		"-bench", pattern, "-benchtime", benchtime, "-count", strconv.Itoa(count), ".")
	cmd.Env = append(cmd.Environ(), "GOTMPDIR="+w.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to kill its children too
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("benchmarks of %s: %w\n%s", dir, err, out)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(processors.ReplaceAllString(f[0], ""), "Benchmark")
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, benchmark{name, map[string]float64{}})
		}
		best := all[len(all)-1].best
		for f = f[2:]; len(f) >= 2; f = f[2:] {
			value, err := strconv.ParseFloat(f[0], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			if old, ok := best[f[1]]; !ok || value < old {
				best[f[1]] = value
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no benchmarks %s", dir, pattern)
	}
	return all, nil
}
