package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// faults returns all faults of c, except for reported keys, whose values never got into c.
func (c *Config) faults(reported map[string]bool) []*Error {
	var faults []*Error
	for _, s := range c.settings() {
		if !reported[s.key] && !s.valid() {
			faults = append(faults, &Error{Key: s.key, Value: s.value(), Want: s.want})
		}
	}
	beyond := c.beyondLoopback()
	if beyond != "" && c.Node.Cookie == PublishedCookie && !reported[cookieKey] {
		faults = append(faults, &Error{Key: cookieKey, Value: strconv.Quote(PublishedCookie),
			Want: fmt.Sprintf("this cookie is published: set your own, as %s can be reached from other hosts", beyond)})
	}
	if beyond != "" && c.Node.PreviousCookie == PublishedCookie {
		faults = append(faults, &Error{Key: previousKey, Value: strconv.Quote(PublishedCookie),
			Want: fmt.Sprintf("this cookie is published: none wanted, as %s can be reached from other hosts", beyond)})
	}
	if c.Flake.Interface != "" && (c.Flake.WorkerID != nil || c.Flake.Random) {
		faults = append(faults, &Error{Key: "flake.worker_id", Value: showWorker(c.Flake.WorkerID, c.Flake.Random),
			Want: fmt.Sprintf("flake.interface is %q: only one of the two wanted", c.Flake.Interface)})
	}
	if c.Flake.Etcd && c.Flake.Interface != "" {
		faults = append(faults, &Error{Key: "flake.worker_id", Value: strconv.Quote(fromEtcd),
			Want: fmt.Sprintf("flake.interface is %q: only one of the two wanted", c.Flake.Interface)})
	}
	if keys := c.etcdKeys(); len(keys) > 0 && !c.Etcd.On {
		faults = append(faults, &Error{Key: keys[0], Value: strconv.Quote(fromEtcd), Want: wantEtcd})
	}
	for i := range c.Generators {
		faults = append(faults, c.Generators[i].faults(i, c.Generators[:i])...)
	}
	return append(faults, c.HTTP.faults()...)
}

// faults returns the faults of the keys taken together.
func (h *HTTP) faults() []*Error {
	host, _, err := net.SplitHostPort(h.Listen)
	switch {
	case h.Pprof && h.TokenFile == "":
		return []*Error{{Key: "http.pprof", Value: "true", Want: "http.token_file wanted: profiles are for those who have the token"}}
	case h.Open && h.TokenFile != "":
		return []*Error{{Key: "http.open", Value: "true",
			Want: fmt.Sprintf("http.token_file is %q: only one of the two wanted", h.TokenFile)}}
	case err == nil && host != "" && !IsLoopback(host) && !h.Open && h.TokenFile == "":
		return []*Error{{Key: "http.listen", Value: strconv.Quote(h.Listen),
			Want: "this can be reached from other hosts: http.token_file wanted, or http.open = true if anyone may take ids"}}
	}
	return nil
}

// beyondLoopback returns the valid value that lets other hosts reach the node, or "".
func (c *Config) beyondLoopback() string {
	if _, host, _ := strings.Cut(c.Node.Name, "@"); validName(c.Node.Name) && !IsLoopback(host) {
		return "node.name " + c.Node.Name
	}
	if host, _, err := net.SplitHostPort(c.Node.Listen); err == nil && !IsLoopback(host) {
		return "node.listen " + c.Node.Listen
	}
	return ""
}

// IsLoopback reports whether host is a name or address of the loopback: 127.0.0.0/8,
// ::1, localhost or localhost.localdomain.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") || strings.EqualFold(host, "localhost.localdomain") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// nodeName is what net_kernel checks. It allows a second @, but no peer could dial that.
var nodeName = regexp.MustCompile(`^[0-9A-Za-z_-]+@[!-?A-~¡-ÿ]+$`)

func validName(s string) bool { return len(s) <= 255 && nodeName.MatchString(s) }

// validCookie allows atoms that Erlang can digest; it cannot beyond Latin-1.
func validCookie(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= 255 && isPrintable(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxLatin1 })
}

func validListen(s string) bool { return s == "" || isHostPort(s, 0) }

func validEPMD(s string) bool { return s == "auto" || s == "off" || isHostPort(s, 1) }

func validVerify(s string) bool { return s == VerifyPeer || s == VerifyNone }

// ifSo checks a value only while on holds.
func ifSo(on *bool, valid func(string) bool) func(string) bool {
	return func(s string) bool { return !*on || valid(s) }
}

func isPath(s string) bool { return !strings.ContainsRune(s, 0) }

func validPath(s string) bool { return s != "" && isPath(s) }

func isHostPort(s string, minPort uint64) bool {
	host, port, err := net.SplitHostPort(s)
	n, errPort := strconv.ParseUint(port, 10, 16)
	return err == nil && errPort == nil && host != "" && n >= minPort && isPrintable(host)
}

func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}
