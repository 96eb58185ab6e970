package main

import (
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/formats"
)

func TestInspectRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"": "no ids: give them as arguments, or use - to read standard input",
		"-base 1 1": "-base 1: must be 2 to 62, or canonical, or crockford; for 128 bits uuid; for 64 bits " +
			"base32, base36, base58 or base64",
		"-epoch yesterday 1": `-epoch "yesterday": must be a time since 1970 that ends in Z or an offset, as ` +
			`in 2020-01-01T00:00:00Z`,
		"-format cuid 1":      `-format "cuid": must be one of "` + strings.Join(formats.Names(), `", "`) + `"`,
		"-config x -epoch y":  "-config cannot be combined with -epoch",
		"-machine-bits 23 1":  `-machine-bits 23: must be an integer from 0 to 22`,
		"-config /no/file 1 ": "/no/file: cannot be read: no such file or directory",
	} {
		stdout, stderr, status := called(t, append([]string{"inspect"}, strings.Fields(args)...)...)
		if stdout != "" || stderr != "flake: "+want+"\n" || status != exitUsage {
			t.Errorf("%s: exit status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}
