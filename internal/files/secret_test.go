package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecret(t *testing.T) {
	for _, tt := range []struct {
		content, secret, fault string
		mode                   fs.FileMode
	}{
		{"token\n", "token", "", 0o600},
		{"token\r\n", "token", "", 0o400},
		{"token", "token", "", 0o400},
		{" token ", " token ", "", 0o400},
		{strings.Repeat("t", MaxSecret-1) + "\n", strings.Repeat("t", MaxSecret-1), "", 0o400},
		{"token\nmore", "", "the file has more than one line", 0o600},
		{"token\n\n", "", "the file has more than one line", 0o600},
		{"", "", "the file is empty", 0o600},
		{"\n", "", "the file is empty", 0o600},
		{"token", "", "the file's mode is 0620: other users must not be able to write it", 0o620},
		{"token", "", "the file's mode is 0602: other users must not be able to write it", 0o602},
		{strings.Repeat("t", MaxSecret+1), "", "the file is 4097 bytes long; the limit is 4096", 0o600},
	} {
		path := filepath.Join(t.TempDir(), "secret")
		if err := errors.Join(os.WriteFile(path, []byte(tt.content), 0o600), os.Chmod(path, tt.mode)); err != nil {
			t.Fatal(err)
		}
		fault := ""
		secret, err := Secret(path)
		if err != nil {
			fault = err.Error()
		}
		if secret != tt.secret || fault != tt.fault {
			t.Errorf("%.20q: got %.20q, %q, want %.20q, %q", tt.content, secret, fault, tt.secret, tt.fault)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "cannot be read: no such file or directory",
		t.TempDir():                        "cannot be read: not a regular file",
	} {
		if _, err := Secret(path); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// A secret that root owns may be readable by everybody, as in Docker and Kubernetes.
func TestGuarded(t *testing.T) {
	const root, node, other = 0, 1000, 1001
	for _, tt := range []struct {
		mode        fs.FileMode
		owner, self int
		want        string
	}{
		{0o400, node, node, ""},
		{0o600, node, node, ""},
		{0o440, node, node, "have access"},
		{0o444, node, node, "have access"},
		{0o444, root, node, ""}, // Docker
		{0o644, root, node, ""}, // Kubernetes
		{0o444, root, root, ""}, // a container whose user is root
		{0o640, root, node, ""}, // a package, with the group of the node
		{0o644, other, node, ""},
		{0o664, root, node, "be able to write it"},
		{0o646, root, root, "be able to write it"},
		{0o620, node, node, "be able to write it"},
	} {
		err := guarded(tt.mode, tt.owner, tt.self)
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("mode %04o, owner %d, read by user %d: got %v, want %s", tt.mode, tt.owner, tt.self, err, tt.want)
		}
	}
}
