package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/workers/stores"
	"github.com/flake-go/flake/node/host"
)

// These words may be used instead of a worker id or number.
const (
	random   = "random"
	assigned = "assigned" // by the store
)

// Descriptions of allowed values that several keys share.
const (
	mustBeBool   = "must be true or false"
	mustBePath   = "must be the path of a file"
	mustBePEM    = "must be the path of a PEM file"
	mustBeCookie = "must be 1 to 255 printable characters of Latin-1"
	mustBeMAC    = `must be six bytes in hexadecimal, as in "02:00:00:00:00:01", or "random" or "assigned"`
	notByHand    = `is a worker that a store assigns, so another node may get it: set another, ` +
		`as in "02:00:00:00:00:01", or "random" or "assigned"`
	onlyOne = "%s is set too: set only one of the two"
)

// setting is a key: its value, and which values are allowed.
type setting struct {
	key   string
	value func() any       // returns the value in one of TOML's types, or nil if it is not set
	set   func(v any) bool // sets the value and reports whether it could be stored
	ok    bool             // whether the value is allowed
	must  string           // what is allowed
}

// settings lists the keys, in the order of the shipped file.
func (c *Config) settings() []setting {
	n, t, f, h, e, l := &c.Node, &c.Node.TLS, &c.Flake, &c.HTTP, &c.Numbers, &c.Log
	settings := []setting{
		field("node.name", &n.Name, validName(n.Name),
			"must be name@host: letters, digits, _ and - before the @, no space after it, at most 255 bytes"),
		field(cookieKey, &n.Cookie, validCookie(n.Cookie), mustBeCookie),
		field(cookieKey+ofFile, &n.CookieFile, isPath(n.CookieFile), mustBePath),
		field(previousKey, &n.PreviousCookie, n.PreviousCookie == "" || validCookie(n.PreviousCookie),
			mustBeCookie+`, or "" for none`),
		field(previousKey+ofFile, &n.PreviousCookieFile, isPath(n.PreviousCookieFile), mustBePath),
		field("node.listen", &n.Listen, validListen(n.Listen), `must be "host:port", or "" for any free port`),
		field("node.epmd", &n.EPMD, n.EPMD == "auto" || n.EPMD == "off" || isHostPort(n.EPMD, 1),
			`must be "auto", "off" or "host:port"`),
		seconds("node.net_ticktime", &n.NetTicktime, 4, 3600),
		integer("node.max_connections", &n.MaxConnections, 1, 1, 1_000_000, ""),
		integer("node.max_connections_per_host", &n.MaxConnectionsPerHost, 1, 1, 1_000_000, ""),
		seconds("node.drain_time", &n.DrainTime, 0, 3600),
		{"node.memory_limit", func() any { return n.MemoryLimit }, func(v any) bool { return setSize(&n.MemoryLimit, v) },
			n.MemoryLimit == 0 || n.MemoryLimit >= 32<<20,
			`must be at least 32 MiB, as a number of bytes or as in "256MiB" or "2GiB", or 0 for none`},
		field("node.tls.cert", &t.Cert, !t.On || validPath(t.Cert), mustBePEM),
		field("node.tls.key", &t.Key, !t.On || validPath(t.Key), mustBePEM),
		field("node.tls.ca", &t.CA, !t.On || t.Verify == VerifyNone || validPath(t.CA),
			mustBePEM+`, unless node.tls.verify is "none"`),
		oneOf("node.tls.verify", &t.Verify, VerifyPeer, VerifyNone),
		field("flake.interface", &f.Interface, isPrintable(f.Interface), "must be the name of a network interface"),
		f.setting("flake.", formats.KindOf("flake").Key("worker_id")),
		field("flake.timestamp_path", &f.TimestampPath, isPath(f.TimestampPath), mustBePath),
		integer("flake.allowable_downtime", (*int64)(&f.AllowableDowntime), int64(time.Millisecond),
			1, math.MaxInt64/int64(time.Millisecond), ", in milliseconds"), // the maximum of a time.Duration
		oneOf("flake.clock", &f.Clock, ClockWall, ClockMonotonic),
		field("http.listen", &h.Listen, validListen(h.Listen), `must be "host:port", or "" for no HTTP`),
		field("http.metrics", &h.Metrics, validListen(h.Metrics),
			`must be "host:port", or "" for no separate metrics listener`),
		field("http.token_file", &h.TokenFile, isPath(h.TokenFile), mustBePath),
		field("http.open", &h.Open, true, mustBeBool),
		field("http.pprof", &h.Pprof, true, mustBeBool),
		field("http.tls.cert", &h.TLS.Cert, !h.TLS.On || validPath(h.TLS.Cert), mustBePEM),
		field("http.tls.key", &h.TLS.Key, !h.TLS.On || validPath(h.TLS.Key), mustBePEM),
		field("numbers.store", &e.Store, !e.On || e.Kind() != nil, mustBeStore),
		field("numbers.prefix", &e.Prefix, e.Prefix != "" && isPrintable(e.Prefix), "must be printable, and not empty"),
		integer("numbers.count", &e.Count, 1, 0, 1<<20, ", where 0 means as many as fit"),
		seconds("numbers.hold", &e.Hold, 1, 24*3600),
		seconds("numbers.start_timeout", &e.StartTimeout, 0, 24*3600),
		field("numbers.wait", &e.Wait, true, mustBeBool),
	}
	for _, k := range stores.Kinds {
		for _, key := range k.Keys {
			settings = append(settings, e.setting(key))
		}
	}
	settings = append(settings,
		setting{"log.level", func() any { return strings.ToLower(l.Level.String()) },
			func(v any) bool { return setLevel(&l.Level, v) }, true, `must be "debug", "info", "warn" or "error"`},
		oneOf("log.format", &l.Format, LogText, LogJSON))
	for i := range c.Generators {
		settings = append(settings, c.Generators[i].settings(i)...)
	}
	return settings
}

// setting returns the setting for a key of a store's table.
func (n *Numbers) setting(k stores.Key) setting {
	get := func() any { return n.Keys.Text(k.Name) }
	set := func(v any) bool {
		text, ok := v.(string)
		n.Keys = n.Keys.Replace(k.Name, []string{text})
		return ok
	}
	if k.List {
		get = func() any { return n.Keys[k.Name] }
		set = func(v any) bool {
			list, ok := texts(v)
			n.Keys = n.Keys.Replace(k.Name, list)
			return ok
		}
	}
	invalid := func(s string) bool { return !k.Valid(s) }
	return setting{k.Name, get, set, !slices.ContainsFunc(n.Keys[k.Name], invalid), k.Must}
}

// field returns a setting whose field has one of TOML's types.
func field[T any](key string, p *T, ok bool, must string) setting {
	return setting{key, func() any { return *p }, func(v any) bool { return assign(p, v) }, ok, must}
}

func assign[T any](p *T, v any) (ok bool) {
	*p, ok = v.(T)
	return ok
}

// integer returns a setting for an integer that the file gives in multiples of unit.
func integer(key string, p *int64, unit, from, to int64, more string) setting {
	return setting{key, func() any { return *p / unit }, func(v any) bool {
		n, ok := v.(int64)
		return ok && 0 <= n && n <= math.MaxInt64/unit && assign(p, any(n*unit))
	}, from*unit <= *p && *p <= to*unit, mustBeInteger(from, to) + more}
}

func seconds(key string, p *time.Duration, from, to int64) setting {
	return integer(key, (*int64)(p), int64(time.Second), from, to, ", in seconds")
}

func mustBeInteger(from, to int64) string {
	return fmt.Sprintf("must be an integer from %d to %d", from, to)
}

func oneOf(key string, p *string, a, b string) setting {
	return field(key, p, *p == a || *p == b, fmt.Sprintf("must be %q or %q", a, b))
}

func setLevel(p *slog.Level, v any) bool {
	name, _ := v.(string)
	return slices.Contains([]string{"debug", "info", "warn", "error"}, name) && p.UnmarshalText([]byte(name)) == nil
}

// texts returns the value of a key that is a list of strings, from a file or from another Config.
func texts(v any) (list []string, ok bool) {
	if list, ok := v.([]string); ok {
		return list, true
	}
	all, ok := v.([]any)
	for _, one := range all {
		s, isString := one.(string)
		ok = ok && isString
		list = append(list, s)
	}
	return list, ok
}

// setSize accepts a number of bytes as an integer, or text with a unit.
func setSize(p *int64, v any) bool {
	text, isText := v.(string)
	if !isText {
		return assign(p, v)
	}
	for _, u := range []struct {
		name  string
		bytes uint64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}} {
		if digits, has := strings.CutSuffix(text, u.name); has {
			n, err := strconv.ParseUint(digits, 10, 64)
			*p = int64(n * u.bytes)
			return err == nil && n <= math.MaxInt64/u.bytes
		}
	}
	return false
}

// Changed returns the keys whose values differ in a and b, in the order of the shipped file,
// followed by the keys that only a has.
func Changed(a, b Config) (keys []string) {
	before, after := a.values(), b.values()
	for _, s := range slices.Concat(b.settings(), a.settings()) {
		if before[s.key] != after[s.key] && !slices.Contains(keys, s.key) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// values returns the values of all keys as a file would contain them, including the cookies.
func (c *Config) values() map[string]string {
	values := make(map[string]string)
	for _, s := range c.settings() {
		values[s.key] = show("", s.value())
	}
	return values
}

// Take sets a key to its value in from. If the key belongs to a table, c must have that table.
func (c *Config) Take(key string, from *Config) {
	is := func(s setting) bool { return s.key == key }
	to, other := c.settings(), from.settings()
	to[slices.IndexFunc(to, is)].set(other[slices.IndexFunc(other, is)].value())
	if key == cookieKey {
		c.Node.CookieFrom = from.Node.CookieFrom
	}
}

// Check returns the faults of a configuration that was combined from several results of [Load].
func (c *Config) Check() error { return join(c.faults(nil)) }

// A Value is the value of a key, and its source.
type Value struct {
	Key  string // such as "node.name" or "generator[1].id"
	Text string // as in the file; a cookie is hidden
	From string // a flag, a variable, or a file and its line if known; empty: the default
}

// Values returns the values of all keys, in the order of the shipped file. It leaves out keys
// of missing tables, and unset keys of generators.
func (c *Config) Values() (values []Value) {
	absent := map[string]bool{"node.tls": !c.Node.TLS.On, "http.tls": !c.HTTP.TLS.On, "numbers": !c.Numbers.On}
	for _, name := range stores.Names() {
		absent[name] = name != c.Numbers.Store
	}
	for _, s := range c.settings() {
		v := Value{s.key, show(s.key, s.value()), c.from[s.key]}
		if v.Text == hidden {
			v.Text = "(set)"
		}
		table := s.key[:strings.LastIndexByte(s.key, '.')]
		if absent[table] || strings.HasPrefix(table, "generator[") && v.From == "" {
			continue
		}
		values = append(values, v)
	}
	return values
}

// hidden is shown in place of a cookie or a password, which must never be logged.
const hidden = "(hidden)"

// localLayouts has the layout of each of TOML's times without an offset, by the name that the
// parser gives its zone.
var localLayouts = map[string]string{
	"datetime-local": "2006-01-02T15:04:05.999999999",
	"date-local":     time.DateOnly,
	"time-local":     "15:04:05.999999999",
}

// show formats v as in the file, unless the value must stay hidden.
func show(key string, v any) string {
	if key == cookieKey || (key == previousKey || stores.KeyOf(key).Secret) && v != "" {
		return hidden
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return strconv.Quote(v)
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case map[string]any:
		return "a table"
	case time.Time:
		return v.Format(cmp.Or(localLayouts[v.Location().String()], time.RFC3339Nano))
	case []any, []map[string]any:
		return "an array"
	case float64:
		return fmt.Sprintf("%v (a float)", v)
	default:
		return fmt.Sprint(v)
	}
}

// faults returns all faults of c, except those of reported keys, whose values were not stored in c.
func (c *Config) faults(reported map[string]bool) (faults []*Error) {
	values := c.values()
	for _, s := range c.settings() {
		if !reported[s.key] && !s.ok {
			faults = append(faults, &Error{Key: s.key, Value: show(s.key, s.value()), Want: s.must})
		}
	}
	fault := func(key, format string, a ...any) {
		if !reported[key] {
			faults = append(faults, &Error{Key: key, Value: values[key], Want: fmt.Sprintf(format, a...)})
		}
	}
	if beyond := c.beyondLoopback(); beyond != "" {
		const published = "this cookie is published: %s, because %s can be reached from other hosts"
		if c.Node.Cookie == PublishedCookie {
			fault(cookieKey, published, "set your own", beyond)
		}
		if c.Node.PreviousCookie == PublishedCookie {
			fault(previousKey, published, "remove it", beyond)
		}
	}
	if f := &c.Flake; f.Interface != "" && (f.Random || f.has("worker_id")) {
		fault("flake.worker_id", "flake.interface is %q: set only one of the two", f.Interface)
	}
	if keys := c.assignedKeys(); len(keys) > 0 && !c.Numbers.On {
		fault(keys[0], needsStore)
	}
	if k := c.Numbers.Kind(); k != nil {
		for _, f := range k.Check(c.Numbers.Keys) {
			fault(f.Key, "%s", f.Want)
		}
	}
	for _, k := range stores.Kinds {
		isSet := func(key stores.Key) bool { return c.Numbers.Keys[key.Name] != nil }
		if i := slices.IndexFunc(k.Keys, isSet); i >= 0 && k.Name != c.Numbers.Store {
			fault(k.Keys[i].Name, "needs numbers.store = %q", k.Name)
		}
	}
	for i := range c.Generators {
		key := generatorKey(i) + "."
		c.Generators[i].faults(c.Generators[:i], func(name, want string) { fault(key+name, "%s", want) })
	}
	h := &c.HTTP
	address, _, _ := net.SplitHostPort(h.Listen)
	switch {
	case h.Metrics != "" && h.Listen == "":
		fault("http.metrics", "needs http.listen")
	case h.Pprof && h.TokenFile == "":
		fault("http.pprof", "needs http.token_file: profiles are only for callers with the token")
	case h.Open && h.TokenFile != "":
		fault("http.open", "http.token_file is %q: set only one of the two", h.TokenFile)
	case address != "" && !host.IsLoopback(address) && !h.Open && h.TokenFile == "":
		fault("http.listen", "this can be reached from other hosts: "+
			"set http.token_file, or http.open = true if anyone may take ids")
	}
	return faults
}

const needsStore = "needs a table [numbers] with the store that assigns it"

var mustBeStore = `must be one of "` + strings.Join(stores.Names(), `", "`) + `"`

// beyondLoopback returns the valid setting that lets other hosts reach the node, or "".
func (c *Config) beyondLoopback() string {
	if _, name, _ := strings.Cut(c.Node.Name, "@"); validName(c.Node.Name) && !host.IsLoopback(name) {
		return "node.name " + c.Node.Name
	}
	if address, _, err := net.SplitHostPort(c.Node.Listen); err == nil && !host.IsLoopback(address) {
		return "node.listen " + c.Node.Listen
	}
	return ""
}

// nodeName matches the names that net_kernel accepts, except those with a control character or a second @,
// which no peer could dial.
var nodeName = regexp.MustCompile(`^[0-9A-Za-z_-]+@[!-?A-~¡-ÿ]+$`)

func validName(s string) bool { return len(s) <= 255 && nodeName.MatchString(s) }

// validCookie reports whether s is an atom that Erlang can digest: all its characters must be Latin-1.
func validCookie(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= 255 && isPrintable(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxLatin1 })
}

func validListen(s string) bool { return s == "" || isHostPort(s, 0) }

func isPath(s string) bool { return !strings.ContainsRune(s, 0) }

func validPath(s string) bool { return s != "" && isPath(s) }

func isHostPort(s string, minPort uint64) bool {
	host, port, _ := net.SplitHostPort(s)
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && n >= minPort && isPrintable(host)
}

func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}
