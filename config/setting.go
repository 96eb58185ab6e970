package config

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// setting is one key: how its value gets into the Config, and what is allowed.
type setting struct {
	key   string
	want  string
	set   func(v any) bool // false if v has the wrong type
	valid func() bool
	value func() string // as in the file
}

const (
	minTicktime     = 4 * time.Second
	maxTicktime     = time.Hour
	longestInterval = time.Hour
	mostConnections = 1_000_000
	minMemory       = 32 << 20                                            // less leaves no room for other nodes
	maxDowntime     = math.MaxInt64 / time.Millisecond * time.Millisecond // what a time.Duration holds
)

// settings lists the keys, in the order of the shipped file.
func (c *Config) settings() []setting {
	n, t, f, h := &c.Node, &c.Node.TLS, &c.Flake, &c.HTTP
	text := func(key, want string, p *string, valid func(string) bool) setting {
		return setting{key, want, setString(p),
			func() bool { return valid(*p) },
			func() string { return fmt.Sprintf("%q", *p) }}
	}
	number := func(key, want string, p *time.Duration, unit, from, to time.Duration) setting {
		return setting{key, want, setDuration(p, unit),
			func() bool { return from <= *p && *p <= to && *p%unit == 0 },
			func() string { return fmt.Sprint(int64(*p / unit)) }}
	}
	connections := func(key string, p *int64) setting {
		return setting{key, fmt.Sprintf("a whole number from 1 to %d wanted", mostConnections), setInteger(p),
			func() bool { return 1 <= *p && *p <= mostConnections },
			func() string { return fmt.Sprint(*p) }}
	}
	cookie := text(cookieKey, "1 to 255 printable characters of Latin-1 wanted", &n.Cookie, validCookie)
	cookie.value = func() string { return hidden }
	previous := text(previousKey, `1 to 255 printable characters of Latin-1 wanted, or "" for none`, &n.PreviousCookie,
		func(s string) bool { return s == "" || validCookie(s) })
	previous.value = func() string {
		if n.PreviousCookie == "" {
			return `""`
		}
		return hidden
	}
	settings := []setting{
		text("node.name", "name@host wanted: letters, digits, _ and - before the @, no space after it, at most 255 bytes",
			&n.Name, validName),
		cookie,
		text(cookieKey+ofFile, "the path of a file wanted", &n.CookieFile, isPath),
		previous,
		text(previousKey+ofFile, "the path of a file wanted", &n.PreviousCookieFile, isPath),
		text("node.listen", `"host:port" wanted, or "" for any free port`, &n.Listen, validListen),
		text("node.epmd", `"auto", "off" or "host:port" wanted`, &n.EPMD, validEPMD),
		number("node.net_ticktime", "a whole number of seconds from 4 to 3600 wanted",
			&n.NetTicktime, time.Second, minTicktime, maxTicktime),
		connections("node.max_connections", &n.MaxConnections),
		connections("node.max_connections_per_host", &n.MaxConnectionsPerHost),
		number("node.drain_time", "a whole number of seconds from 0 to 3600 wanted",
			&n.DrainTime, time.Second, 0, longestInterval),
		{"node.memory_limit", `bytes wanted, 32 MiB or more, as a whole number or as in "256MiB" or "2GiB", or 0 for none`, setSize(&n.MemoryLimit),
			func() bool { return n.MemoryLimit == 0 || n.MemoryLimit >= minMemory },
			func() string { return fmt.Sprint(n.MemoryLimit) }},
		text("node.tls.cert", "the path of a PEM file wanted", &t.Cert, ifSo(&t.On, validPath)),
		text("node.tls.key", "the path of a PEM file wanted", &t.Key, ifSo(&t.On, validPath)),
		text("node.tls.ca", `the path of a PEM file wanted, or node.tls.verify = "none"`, &t.CA,
			func(s string) bool { return !t.On || t.Verify == VerifyNone || validPath(s) }),
		text("node.tls.verify", `"peer" or "none" wanted`, &t.Verify, validVerify),
		text("flake.interface", "the name of a network interface wanted", &f.Interface, isPrintable),
		{"flake.worker_id", wantMAC, orEtcd(func() { f.Etcd = true }, orRandom(&f.Random, setMAC(&f.WorkerID))),
			func() bool { return len(f.WorkerID) == 0 || len(f.WorkerID) == 6 },
			func() string {
				if f.Etcd {
					return fmt.Sprintf("%q", fromEtcd)
				}
				return showWorker(f.WorkerID, f.Random)
			}},
		text("flake.timestamp_path", "the path of a file wanted", &f.TimestampPath, isPath),
		number("flake.allowable_downtime",
			fmt.Sprintf("a whole number of milliseconds from 1 to %d wanted", maxDowntime/time.Millisecond),
			&f.AllowableDowntime, time.Millisecond, time.Millisecond, maxDowntime),
		text("flake.clock", `"wall" or "monotonic" wanted`, &f.Clock,
			func(s string) bool { return s == ClockWall || s == ClockMonotonic }),
		text("http.listen", `"host:port" wanted, or "" for no HTTP`, &h.Listen, validListen),
		text("http.token_file", "the path of a file wanted", &h.TokenFile, isPath),
		{"http.open", "true or false wanted", setBool(&h.Open), func() bool { return true },
			func() string { return fmt.Sprint(h.Open) }},
		{"http.pprof", "true or false wanted", setBool(&h.Pprof), func() bool { return true },
			func() string { return fmt.Sprint(h.Pprof) }},
		text("http.tls.cert", "the path of a PEM file wanted", &h.TLS.Cert, ifSo(&h.TLS.On, validPath)),
		text("http.tls.key", "the path of a PEM file wanted", &h.TLS.Key, ifSo(&h.TLS.On, validPath)),
	}
	settings = append(settings, c.Etcd.settings()...)
	settings = append(settings, c.Log.settings()...)
	for i := range c.Generators {
		settings = append(settings, c.Generators[i].settings(i)...)
	}
	return settings
}

const wantMAC = `six bytes in hexadecimal wanted, as in "02:00:00:00:00:01", or "random" or "etcd"`

// random is the value of a worker id that is made up.
const random = "random"

// hidden stands for a cookie, which must never be logged.
const hidden = "(hidden)"

func setString(p *string) func(any) bool {
	return func(v any) bool {
		s, ok := v.(string)
		if ok {
			*p = s
		}
		return ok
	}
}

func setBool(p *bool) func(any) bool {
	return func(v any) (ok bool) {
		*p, ok = v.(bool)
		return ok
	}
}

func setInteger(p *int64) func(any) bool {
	return func(v any) (ok bool) {
		*p, ok = v.(int64)
		return ok
	}
}

// units are those of a size.
var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// setSize accepts bytes as a number, or a text with a unit.
func setSize(p *int64) func(any) bool {
	return func(v any) (ok bool) {
		text, isText := v.(string)
		if !isText {
			*p, ok = v.(int64)
			return ok
		}
		for _, u := range units {
			if digits, has := strings.CutSuffix(text, u.name); has {
				n, err := strconv.ParseInt(digits, 10, 64)
				*p = n * u.bytes
				return err == nil && 0 <= n && n <= math.MaxInt64/u.bytes
			}
		}
		return false
	}
}

func setDuration(p *time.Duration, unit time.Duration) func(any) bool {
	return func(v any) bool {
		n, ok := v.(int64)
		if !ok || n < 0 || n > math.MaxInt64/int64(unit) {
			return false
		}
		*p = time.Duration(n) * unit
		return true
	}
}

// orRandom accepts the word for a random worker id too.
func orRandom(p *bool, set func(any) bool) func(any) bool {
	return func(v any) bool {
		*p = v == random
		return *p || set(v)
	}
}

// showWorker writes a worker id as in the file.
func showWorker(mac net.HardwareAddr, isRandom bool) string {
	if isRandom {
		return fmt.Sprintf("%q", random)
	}
	return fmt.Sprintf("%q", mac)
}

// setMAC accepts : or - between the bytes, but not three dotted groups.
func setMAC(p *net.HardwareAddr) func(any) bool {
	return func(v any) bool {
		s, ok := v.(string)
		if s == "" {
			return ok
		}
		mac, err := net.ParseMAC(s)
		if err != nil || len(mac) != 6 || strings.Contains(s, ".") {
			return false
		}
		*p = mac
		return true
	}
}
