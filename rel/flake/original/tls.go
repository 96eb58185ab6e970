package original

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/node/etf"
)

// serverOptions are the options of distribution over TLS that this node takes.
var serverOptions = []string{"server_cacertfile", "server_certfile", "server_fail_if_no_peer_cert", "server_keyfile",
	"server_verify"}

// addTLS passes the options of distribution over TLS to once: from the command line, where
// each option may have a separate flag, or from the file that the command line names.
func (s *Settings) addTLS(what, flag string, values []string, once func(name, value string) error) error {
	found := false
	add := func(name, value string) error {
		if !slices.Contains(serverOptions, name) {
			return nil
		}
		found = true
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
	why := ""
	if !found {
		why = "no server option that this node has"
	}
	s.report(what, why)
	return nil
}

// addFile passes the server's options in a file, [{server, Options}, {client, Options}], to add.
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
