package peertest

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// The npm packages uuid and ulid read the times of our ids and reject strings that are not ids. We
// read the times of their ids.
func TestNPM(t *testing.T) {
	type asked struct{ text, want string }
	all := []asked{
		{"019b76da-a800-4001-8080-00000001e345", "refused"}, {"019b76da-a800-7001-c080-00000001e345", "refused"},
		{"8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "refused"}, {"01KDVDNA00000G4000000U28T5", "refused"},
	}
	for _, bad := range all {
		_, err1 := uuidv7.Parse(bad.text)
		if _, err2 := ulid.Parse(bad.text); err1 == nil || err2 == nil {
			t.Errorf("%s: %v, %v", bad.text, err1, err2)
		}
	}
	for _, id := range ourUUIDs(t) {
		all = append(all, asked{id.String(), strconv.FormatUint(id.Milli(), 10)})
	}
	for _, id := range ourULIDs(t) {
		all = append(all, asked{id.String(), strconv.FormatUint(id.Milli(), 10)})
	}
	var in strings.Builder
	for _, a := range all {
		in.WriteString(a.text + "\n")
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/npm/ids.js", strconv.Itoa(*peerIDs/3))
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v; install the packages: npm install --prefix flake/peertest/testdata/npm --no-save "+
			"--no-package-lock: %s", err, err.(*exec.ExitError).Stderr)
	}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for _, a := range all {
		if lines.Scan(); lines.Text() != a.want {
			t.Fatalf("they read the time of %s as %s, want %s", a.text, lines.Text(), a.want)
		}
	}
	theirs := 0
	for lines.Scan() {
		text, time, _ := strings.Cut(lines.Text(), " ")
		milli, back := uint64(0), ""
		if len(text) == 36 {
			id, err := uuidv7.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := uuidv7.Make(id.Milli(), id.Worker(), id.Sequence(), id.Random())
			milli, back = id.Milli(), again.String()
		} else {
			id, err := ulid.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := ulid.Make(id.Milli(), id.Worker(), id.Sequence(), id.Random())
			milli, back = id.Milli(), again.String()
		}
		if back != text || strconv.FormatUint(milli, 10) != time {
			t.Fatalf("we read %s with time %s as %s with time %d", text, time, back, milli)
		}
		theirs++
	}
	if theirs < *peerIDs/3*3 {
		t.Errorf("read only %d of their ids", theirs)
	}
	t.Logf("%d ids of ours, %d of theirs", len(all), theirs)
}
