package escape

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "",
		`flake@a "ü" \n 日本`:   `flake@a "ü" \n 日本`,
		"a\nb\tc\r\x1b[2J":    `a\nb\tc\r\x1b[2J`,
		"\x00\u0085\u202e":    `\x00\u0085\u202e`,
		"\xff\ufffd\u00a0end": `\xff` + "\ufffd" + `\u00a0end`,
	} {
		if got := Text(text); got != want || Text(got) != got || Safe(text) != (got == text) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := Lines("a\n\tb\x1b\xfe"); got != "a\n\tb"+`\x1b\xfe` {
		t.Error(got)
	}
}

func TestErr(t *testing.T) {
	err := Err(fmt.Errorf("a\nb: %w", io.EOF))
	if err.Error() != `a\nb: EOF` || !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:8465/a@b":  "http://127.0.0.1:8465/a@b",
		"http://user:PASS@host/a@b":  "http://user:xxxxx@host/a@b",
		"http://user@host":           "http://user@host",
		"http://user:PASS@host:port": "xxxxx@host:port",
		"http://user:PA%SS@host":     "xxxxx@host",
		"http://user:PA/SS@host":     "xxxxx@host",
		"user:PASS@host":             "xxxxx@host",
		"user:PA//SS@host":           "xxxxx@host",
		"//user:PASS@host\x00":       "xxxxx@host\x00",
		"ftp:@//":                    "xxxxx@//",
		"":                           "",
	} {
		if got := URL(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
