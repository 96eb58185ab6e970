package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/internal/testenv"
)

// With a mark, the ids of successive runs ascend in each format, and inspect decodes them.
func TestGenerate(t *testing.T) {
	for _, k := range formats.Kinds {
		var layout []string
		if k.Key("epoch") != nil {
			layout = []string{"-epoch", "2020-01-01T00:00:00Z"}
		}
		args := "generate -n 3000 -format " + k.Name + " -base 16 -mark " + filepath.Join(t.TempDir(), "mark") + " " +
			strings.Join(layout, " ")
		for _, key := range k.Numbers[len(k.Numbers)-1] {
			value := " 7"
			if k.Random() {
				value = " 02:00:00:00:00:09"
			}
			args += " -" + strings.ReplaceAll(key, "_", "-") + value
		}
		if k.Key("meta") != nil {
			args += " -meta 3"
		}
		var all []string
		for range 2 {
			stdout, stderr, status := called(t, strings.Fields(args)...)
			if status != 0 {
				t.Fatalf("%s: exit status %d: %s", args, status, stderr)
			}
			all = append(all, strings.Fields(stdout)...)
		}
		if len(all) != 6000 || !slices.IsSorted(all) || len(slices.Compact(all)) != 6000 {
			t.Errorf("%s: got %d ids, want 6000 different ones in ascending order", args, len(all))
		}
		inspect := slices.Concat([]string{"inspect", "-format", k.Name, "-base", "16"}, layout, all[:1])
		stdout, _, status := called(t, inspect...)
		if status != 0 || !strings.HasPrefix(stdout, all[0]+": "+k.Name+", read as base 16\n") ||
			!strings.Contains(stdout, " s ago\n") && !strings.Contains(stdout, " ms ago\n") {
			t.Errorf("%q: exit status %d: %s", inspect, status, stdout)
		}
	}
}

// A random worker id is kept in the file of the mark; without a mark, each run has a different one.
func TestGenerateMadeUp(t *testing.T) {
	workerOf := func(args ...string) string {
		stdout, stderr, status := called(t, append([]string{"generate", "-base", "16"}, args...)...)
		if text := strings.TrimSpace(stdout); status == 0 && len(text) > 16 {
			return text[len(text)-16 : len(text)-4]
		}
		t.Fatalf("exit status %d, %s%s", status, stdout, stderr)
		return ""
	}
	mark := filepath.Join(t.TempDir(), "mark")
	if first, second := workerOf("-mark", mark), workerOf("-mark", mark); first != second {
		t.Errorf("two runs with the same file have the workers %s and %s", first, second)
	}
	if first, second := workerOf(), workerOf(); first == second {
		t.Errorf("two runs without a mark have the same worker, %s", first)
	}
	for format, want := range map[string]string{"uuidv7": `^[0-9a-f-]{14}7[0-9a-f-]{21}$`,
		"ulid": `^[0-7][0-9A-HJKMNP-TV-Z]{25}$`} {
		stdout, stderr, status := called(t, "generate", "-format", format)
		if status != 0 || !regexp.MustCompile(want).MatchString(strings.TrimSpace(stdout)) {
			t.Errorf("%s: exit status %d, %s%s", format, status, stdout, stderr)
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	const noMark = "-mark: must be a file that records how far the ids have gone; without it, ids with a " +
		"chosen number could repeat"
	for args, want := range map[string]string{
		"-n 0": "-n 0: must be 1 or more",
		"-base 63": "-base 63: must be 2 to 62, or canonical, or crockford; for 128 bits uuid; " +
			"for 64 bits base32, base36, base58 or base64",
		"-meta 256 -format sno -partition 7": "-meta 256: must be an integer from 0 to 255",
		"-meta 3":                            `-meta "3": not a key of format flake, only of sno`,
		"-format sno":                        "-partition: set one that no other node has",
		"-format snowflake -id 5000":         "-id 5000: must be an integer from 0 to 1023",
		"-format sno -partition 7":           noMark,
		"-format snowflake -id 1":            noMark,
		"-format flake-idgen -id 1":          noMark,
		"-worker-id 2:0:0:0:0:1": `-worker-id "2:0:0:0:0:1": must be six bytes in hexadecimal, as in ` +
			`"02:00:00:00:00:01", or "random"`,
		"-worker-id 02:00:00:00:00:01": noMark,
		"-worker-id assigned -mark m":  `-worker-id "assigned": only nodes can take numbers from a store`,
		"-partition 7":                 `-partition "7": not a key of format flake, only of sno; use worker_id instead`,
	} {
		stdout, stderr, status := called(t, append([]string{"generate"}, strings.Fields(args)...)...)
		if stdout != "" || stderr != "flake: "+want+"\n" || status != exitUsage {
			t.Errorf("%s: exit status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}

// generate refuses a node's file: it has a mark for each generator, and generate cannot know which of them belongs to
// its number.
func TestGenerateInFileOfNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timestamp")
	marks, err := flake.OpenMarks(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "orders"} {
		if _, err := flake.Open(t.Context(), name, 5, flake.Options{Marks: marks}); err != nil {
			t.Fatal(err)
		}
	}
	if err := marks.Close(); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := called(t, "generate", "-format", "snowflake", "-id", "295", "-mark", path)
	if want := "such as orders: use a different one\n"; stdout != "" || !strings.HasSuffix(stderr, want) ||
		status != exitFailure {
		t.Errorf("exit status %d, %q, %q", status, stdout, stderr)
	}
}

// If the reader of its output exits, SIGPIPE ends generate. The saved mark is exact, so the next run need not wait.
func TestGenerateBrokenPipe(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	testenv.Need(t, "bash", "head")
	many := exec.Command("bash", "-c", `"$0" generate -n 1000000000 -mark "$1" | head -1; echo "${PIPESTATUS[0]}"`,
		command, mark)
	out, err := many.Output()
	if lines := strings.Fields(string(out)); err != nil || len(lines) != 2 || lines[1] != "141" {
		t.Errorf("%v, %q", err, out)
	}
	if _, stderr, status := called(t, "generate", "-mark", mark); status != 0 || stderr != "" {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}
