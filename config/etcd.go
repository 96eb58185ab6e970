package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Etcd is the table [etcd]: where the numbers are that tell nodes apart.
type Etcd struct {
	On           bool // there is such a table
	Endpoints    []string
	Prefix       string        // of the keys
	Numbers      int64         // how many there are; 0: as many as fit the formats
	Hold         time.Duration // in the file seconds
	StartTimeout time.Duration // how long a start waits for etcd, in the file seconds; 0: for ever
	Wait         bool          // for a number, if none is free
	User         string
	PasswordFile string // whose first line is the password
	CA           string // PEM files
	Cert         string
	Key          string
}

// fromEtcd is the value of a number that etcd deals out.
const fromEtcd = "etcd"

// wantEtcd is what such a value needs.
const wantEtcd = "a table [etcd] with endpoints wanted"

// minHold is the least that ids go on while etcd is away.
const minHold = time.Second

func (e *Etcd) settings() []setting {
	text := func(key, want string, p *string, valid func(string) bool) setting {
		return setting{"etcd." + key, want, setString(p), func() bool { return valid(*p) }, func() string { return fmt.Sprintf("%q", *p) }}
	}
	seconds := func(key string, p *time.Duration, from time.Duration) setting {
		return setting{"etcd." + key, fmt.Sprintf("a whole number of seconds from %d to %d wanted", from/time.Second, maxTicktime/time.Second*24),
			setDuration(p, time.Second), func() bool { return from <= *p && *p <= 24*maxTicktime }, func() string { return fmt.Sprint(int64(*p / time.Second)) }}
	}
	return []setting{
		{"etcd.endpoints", `an array of "host:port" wanted`, setStrings(&e.Endpoints),
			func() bool {
				return !e.On || len(e.Endpoints) > 0 && !slices.ContainsFunc(e.Endpoints, isNoEndpoint)
			},
			func() string { return showList(e.Endpoints) }},
		text("prefix", "what the keys are to begin with wanted", &e.Prefix, func(s string) bool { return s != "" && isPrintable(s) }),
		{"etcd.numbers", "a whole number from 1 to 1048576 wanted, or 0 for as many as fit", setInteger(&e.Numbers),
			func() bool { return 0 <= e.Numbers && e.Numbers <= 1<<20 }, func() string { return fmt.Sprint(e.Numbers) }},
		seconds("hold", &e.Hold, minHold),
		seconds("start_timeout", &e.StartTimeout, 0),
		{"etcd.wait", "true or false wanted", setBool(&e.Wait), func() bool { return true }, func() string { return fmt.Sprint(e.Wait) }},
		text("user", "a name wanted", &e.User, isPrintable),
		text("password_file", "the path of a file wanted, with etcd.user", &e.PasswordFile, func(s string) bool { return isPath(s) && (s == "") == (e.User == "") }),
		text("ca", "the path of a PEM file wanted", &e.CA, isPath),
		text("cert", "the path of a PEM file wanted, with etcd.key", &e.Cert, func(s string) bool { return isPath(s) && (s == "") == (e.Key == "") }),
		text("key", "the path of a PEM file wanted", &e.Key, isPath),
	}
}

// isNoEndpoint tells what is neither host:port nor a URL of it.
func isNoEndpoint(s string) bool {
	_, host, isURL := strings.Cut(s, "://")
	if isURL && (strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")) {
		s = host
	}
	return !isHostPort(s, 1)
}

// FromEtcd tells whether any number comes from etcd.
func (c *Config) FromEtcd() bool { return len(c.etcdKeys()) > 0 }

// etcdKeys returns the keys whose numbers come from etcd.
func (c *Config) etcdKeys() (keys []string) {
	if c.Flake.Etcd {
		keys = append(keys, "flake.worker_id")
	}
	for i, g := range c.Generators {
		for _, name := range g.Etcd {
			keys = append(keys, generatorKey(i)+"."+name)
		}
	}
	return keys
}

// MaxNumber is the highest number that fits all generators that take theirs from etcd.
func (c *Config) MaxNumber() uint64 {
	most := uint64(math.MaxUint16)
	for _, g := range c.Generators {
		if len(g.Etcd) > 0 {
			most = min(most, g.Kind().MaxNumber(g.Options, g.Etcd))
		}
	}
	if c.Etcd.Numbers > 0 {
		most = min(most, uint64(c.Etcd.Numbers)-1)
	}
	return most
}

// orEtcd calls etcd if the file says that a number is from there.
func orEtcd(etcd func(), set func(any) bool) func(any) bool {
	return func(v any) bool {
		if v == fromEtcd {
			etcd()
			return true
		}
		return set(v)
	}
}

func setStrings(p *[]string) func(any) bool {
	return func(v any) bool {
		list, ok := v.([]any)
		*p = nil
		for _, one := range list {
			s, isString := one.(string)
			ok = ok && isString
			*p = append(*p, s)
		}
		return ok
	}
}
