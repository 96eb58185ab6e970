package original

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/config"
)

func TestVMArgs(t *testing.T) {
	for source, want := range map[string]struct {
		name string
		says string // the error, or what is left
	}{
		"":                      {"", ""},
		"-name a@b":             {"a@b", ""},
		"-name 'a@b'# comment":  {"a@b", ""},
		"-name \"a\"@\\b":       {"a@b", ""},
		"-sname a@b":            {"a@b", ""},
		"-sname a":              {"", "-sname a: its host is missing"},
		"-name":                 {"", "-name: with 0 values"},
		"-name a@b -name a@b":   {"a@b", ""},
		"-name a@b\n-sname a@c": {"", "-name is set twice"},
		"\n-name 'a@b":          {"", "line 2: a quote is not closed"},
		"\n-name ${NAME}\n":     {"", "line 2: ${NAME} stands for a variable"},
		"--":                    {"", ""},
		"-flake interface '\"a\"' interface '\"a\"'":    {"", ""},
		"-name {{ node }}":                              {"", "{{ node }} stands for a variable"},
		"# -name ${NAME}":                               {"", ""},
		"-setcookie a -setcookie b":                     {"", "-setcookie is set twice"},
		"-setcookie a@b c":                              {"", "-setcookie: with 2 values"},
		"-extra -name a@b":                              {"", ""},
		"-config sys":                                   {"", "-config: name the file with -sys-config"},
		"-hidden -- -name a@b":                          {"a@b", "-hidden: this node is hidden"},
		"-flake interface":                              {"", "-flake interface: it has no value"},
		"-flake interface '\"a'":                        {"", "its value: not an Erlang term"},
		"-flake interface 'a. b'":                       {"", "its value: more than one term"},
		"-flake Interface a":                            {"", "without variables"},
		"-flake interface a interface b":                {"", "-flake interface is set twice"},
		"-kernel shell_history enabled":                 {"", "kernel shell_history: this node has nothing like it"},
		"-mnesia dir '\"S3CR3T\"'":                      {"", "-mnesia: this node has nothing like it"},
		"-proto_dist inet6_tcp":                         {"", "this node listens where node.listen says"},
		"-args_file":                                    {"", "-args_file names no file"},
		"-args_file none":                               {"", "none: cannot be read: no such file"},
		"-args_file vm.args":                            {"", "-args_file names no file, or there are more than 16 files"},
		"-ssl_dist_optfile none":                        {"", "-ssl_dist_optfile none: cannot be read: no such file"},
		"-ssl_dist_optfile":                             {"", "-ssl_dist_optfile: no server option"},
		"-ssl_dist_opt server_verify":                   {"", "-ssl_dist_opt: no server option"},
		"-ssl_dist_opt certfile S3CR3T":                 {"", "-ssl_dist_opt certfile: no server option"},
		"-ssl_dist_opt server_verify a server_verify b": {"", "server_verify is set twice"},
		"-ssl_dist_opt server_verify a -ssl_dist_opt server_verify a": {"", ""},
		"-proto_dist inet_tls": {"", "it has no server certificate"},
	} {
		var s Settings
		err := ReadVMArgs(filepath.Join(write(t, map[string]string{"vm.args": source}), "vm.args"), &s)
		says := strings.Join(s.Left, "\n")
		if err != nil {
			says, s.Name = err.Error(), ""
		}
		if (want.says == "") != (says == "") || !strings.Contains(says, want.says) || s.Name != want.name ||
			strings.Contains(says, "S3CR3T") {
			t.Errorf("%s\n%q, %s\nwant %+v", source, s.Name, says, want)
		}
	}
}

// TLS options may each have a separate flag, as in OTP's guide. Only server options are taken.
func TestTLS(t *testing.T) {
	dir := write(t, map[string]string{
		"opt": `[{server, [{certfile, "c.pem"}, {cacertfile, "ca.pem"}, {verify, verify_peer}, {fail_if_no_peer_cert, ` +
			`true}, odd, {depth, 2}]},
			{client, [{certfile, "x.pem"}]}, {server}, {}, odd].`,
		"twice": `[{server, [{certfile, "c.pem"}]}, {server, [{certfile, "d.pem"}]}].`,
	})
	opt := filepath.Join(dir, "opt")
	for args, want := range map[string]struct {
		tls         config.TLS
		taken, left string
	}{
		"-proto_dist inet_tls -ssl_dist_opt server_certfile c.pem server_keyfile k.pem client_verify verify_peer": {
			config.TLS{On: true, Cert: "c.pem", Key: "k.pem", Verify: "none"},
			"-proto_dist inet_tls -ssl_dist_opt server_certfile server_keyfile client_verify", ""},
		"-ssl_dist_opt server_certfile c.pem -ssl_dist_opt server_verify verify_peer -proto_dist inet6_tls " +
			"-ssl_dist_opt client_verify verify_peer": {
			config.TLS{On: true, Cert: "c.pem", Key: "c.pem", Verify: "peer"},
			"-ssl_dist_opt server_certfile -ssl_dist_opt server_verify -proto_dist inet6_tls",
			"-ssl_dist_opt client_verify: no server option that this node supports verify_peer without " +
				"fail_if_no_peer_cert: here other nodes must show a certificate"},
		"-proto_dist inet_tls -ssl_dist_optfile " + opt: {
			config.TLS{On: true, Cert: "c.pem", Key: "c.pem", CA: "ca.pem",
				Verify: "peer"}, "-proto_dist inet_tls -ssl_dist_optfile " + opt,
			""},
		"-ssl_dist_opt server_verify verify_none -proto_dist inet_tls": {
			config.TLS{On: true, Verify: "peer"}, "-ssl_dist_opt server_verify -proto_dist inet_tls",
			"-proto_dist: it has no server certificate: fill in [node.tls]"},
		"-ssl_dist_opt server_verify verify_peer": {config.TLS{Verify: "peer"}, "-ssl_dist_opt server_verify", ""},
	} {
		var s Settings
		err := ReadVMArgs(filepath.Join(write(t, map[string]string{"vm.args": args}), "vm.args"), &s)
		taken := strings.ReplaceAll(strings.Join(s.Taken, " "), "vm.args: ", "")
		left := strings.ReplaceAll(strings.Join(s.Left, " "), "vm.args: ", "")
		if err != nil || s.TLS != want.tls || taken != want.taken || left != want.left {
			t.Errorf("%s\n%+v, %v\ntaken %s\nleft %s", args, s.TLS, err, taken, left)
		}
	}
	args := "-ssl_dist_optfile " + filepath.Join(dir, "twice")
	err := ReadVMArgs(filepath.Join(write(t, map[string]string{"vm.args": args}), "vm.args"), new(Settings))
	if err == nil || !strings.Contains(err.Error(), args+": server_certfile is set twice") {
		t.Error(err)
	}
}

// Quoting the arguments and splitting them again changes nothing.
func FuzzArgs(f *testing.F) {
	for _, text := range []string{"-name a@b # c", `'a b'"c d"\ e ''`, "\\", "a#b\nc", "$\\{A}", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args, err := splitArgs(text)
		if err != nil {
			return
		}
		var quoted strings.Builder
		for _, arg := range args {
			for i := range len(arg) {
				quoted.WriteString("\\" + arg[i:i+1])
			}
			quoted.WriteString("'' ")
		}
		if again, err := splitArgs(quoted.String()); err != nil || !slices.Equal(again, args) {
			t.Errorf("%q, and again %q, %v", args, again, err)
		}
	})
}
