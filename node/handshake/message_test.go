package handshake

import (
	"bufio"
	"crypto/md5"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"testing"
)

type message interface {
	Append([]byte) []byte
}

// messages holds messages of each kind, with their bytes.
var messages = []struct {
	message message
	wire    string
	decode  func(src []byte) (message, error)
}{
	{Name{6, 0x123456789, 0xcafe, "a@b"}, "N\x00\x00\x00\x01\x23\x45\x67\x89\x00\x00\xca\xfe\x00\x03a@b", decodeAs[Name]},
	{Name{5, 0x4dbc, 0, "a@b"}, "n\x00\x05\x00\x00\x4d\xbca@b", decodeAs[Name]},
	{Name{6, NameMe, 1, "host"}, "N\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x04host", decodeAs[Name]},
	{Challenge{6, Alias, 0xdeadbeef, 7, "é@b"},
		"N\x00\x00\x00\x08\x00\x00\x00\x00\xde\xad\xbe\xef\x00\x00\x00\x07\x00\x04é@b", decodeAs[Challenge]},
	{Challenge{5, 0x4dbc, 0xdeadbeef, 0, "a@b"}, "n\x00\x05\x00\x00\x4d\xbc\xde\xad\xbe\xefa@b", decodeAs[Challenge]},
	{StatusOK, "sok", decodeAs[Status]},
	{StatusOKSimultaneous, "sok_simultaneous", decodeAs[Status]},
	{StatusNOK, "snok", decodeAs[Status]},
	{StatusNotAllowed, "snot_allowed", decodeAs[Status]},
	{StatusAlive, "salive", decodeAs[Status]},
	{StatusTrue, "strue", decodeAs[Status]},
	{StatusFalse, "sfalse", decodeAs[Status]},
	{complement{0xd, 0xcafe}, "c\x00\x00\x00\x0d\x00\x00\xca\xfe", decodeAs[complement]},
	{Reply{0xca3909e0, Digest{0: 1, 15: 2}}, "r\xca\x39\x09\xe0\x01" + strings.Repeat("\x00", 14) + "\x02",
		decodeAs[Reply]},
	{ack{Digest{0: 1, 15: 2}}, "a\x01" + strings.Repeat("\x00", 14) + "\x02", decodeAs[ack]},
	{named{"A@b", 7}, "snamed:\x00\x03A@b\x00\x00\x00\x07", nil},
}

func decodeAs[M message, P interface {
	*M
	decoder
}](src []byte) (message, error) {
	var m M
	err := P(&m).Decode(src)
	return m, err
}

// Every message encodes to its bytes, and decodes from them unchanged.
func TestRoundTrip(t *testing.T) {
	for _, m := range messages {
		b := m.message.Append([]byte("before"))
		if string(b) != "before"+m.wire {
			t.Errorf("%#v: %q, want %q", m.message, b, "before"+m.wire)
		}
		if m.decode == nil {
			continue
		}
		if got, err := m.decode([]byte(m.wire)); err != nil || got != m.message {
			t.Errorf("%q: %#v, %v, want %#v", m.wire, got, err, m.message)
		}
	}
}

// Decode refuses a part of a message, a message with another tag, and trailing bytes, except after a
// name of version 6.
func TestMalformed(t *testing.T) {
	for _, m := range messages {
		if m.decode == nil {
			continue
		}
		body := len(m.wire)
		if strings.HasPrefix(m.wire, "n") {
			body = strings.IndexByte(m.wire, '@') // the name of version 5 has no length
		}
		for n := range body {
			if got, err := m.decode([]byte(m.wire[:n])); err == nil && got != StatusOK {
				t.Errorf("%q: %#v, want an error", m.wire[:n], got)
			}
		}
		if got, err := m.decode([]byte("x" + m.wire[1:])); err == nil {
			t.Errorf("tag x: %#v, want an error", got)
		}
		_, err := m.decode([]byte(m.wire + "\x00"))
		if later := m.wire[0] == tagNameNew; m.wire[0] != tagNameOld && (err == nil) != later {
			t.Errorf("%q and a byte more: %v", m.wire, err)
		}
	}
}

// An error quotes the message, but not all of a long one.
func TestErrors(t *testing.T) {
	flags := strings.Repeat("\x00", 8)
	for _, test := range []struct {
		message   decoder
		src, want string
	}{
		{new(ack), strings.Repeat("x", 32), `"` + strings.Repeat("x", 32) + `"`},
		{new(ack), strings.Repeat("x", 33), `"` + strings.Repeat("x", 32) + `" and 1 more bytes`},
		{new(Status), "sx", `status: unknown "x"`},
		{new(Name), "n\x00\x05\x00\x00\x4d\xbc", `node name "": must be name@host`},
		{new(Name), "N" + flags + "\x00\x00\x00\x07\x00\x00", `node name "": must be name@host`},
		{new(Name), "N" + flags + "\x00\x00\x00\x07\x00\x04a@b", "send_name: name of 4 bytes, but only 3 left"},
		{new(Name), "n\x00\x06\x00\x00\x4d\xbca@b", "send_name: version 6: must be 5"},
		{new(Challenge), "n\x00\x04\x00\x00\x4d\xbc\x00\x00\x00\x01a@b", "challenge: version 4: must be 5"},
		{new(Challenge), "n\x00\x05\x00\x00\x4d\xbc\x00\x00\x00\x01", `node name "": must be name@host`},
		{new(Challenge), "N" + flags + "\x00\x00\x00\x01\x00\x00\x00\x07\x00\x00", `node name "": must be name@host`},
		{new(Challenge), "N" + flags + "\x00\x00\x00\x01\x00\x00\x00\x07\x00\x04a@b",
			"challenge: name of 4 bytes, but only 3 left"},
	} {
		if err := test.message.Decode([]byte(test.src)); err == nil || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%q: %v, want %s", test.src, err, test.want)
		}
	}
}

// A cookie is encoded in Latin-1 if possible.
func TestCookieOfLatin1(t *testing.T) {
	for cookie, want := range map[string]string{"kéÿ": "k\xe9\xff7", "kéπ": "kéπ7"} {
		if got := makeDigest(cookie, 7); got != md5.Sum([]byte(want)) {
			t.Errorf("%s: %x, want the digest of %q", cookie, got, want)
		}
	}
}

func TestNodeNames(t *testing.T) {
	long := strings.Repeat("a", MaxNameLength-2)
	for _, test := range []struct {
		name  string
		flags Flags
		ok    bool
	}{
		{"a@b", 0, true},
		{"é@b", 0, true},
		{long + "@b", 0, true},
		{"host", NameMe, true},
		{"", 0, false},
		{"a", 0, false},
		{"@b", 0, false},
		{"a@", 0, false},
		{"a@b@c", 0, false},
		{"\xff@b", 0, false},
		{long + "a@b", 0, false},
		{"", NameMe, false},
		{"a@b", NameMe, false},
	} {
		for _, version := range []int{5, 6} {
			if version == 5 && test.flags != 0 {
				continue // version 5 has no bit for NAME_ME
			}
			src := Name{Version: version, Flags: test.flags, Node: test.name}.Append(nil)
			if err := new(Name).Decode(src); (err == nil) != test.ok {
				t.Errorf("version %d: %q: %v, want ok: %t", version, test.name, err, test.ok)
			}
			if test.flags != 0 {
				continue // a challenge always has a name
			}
			src = Challenge{Version: version, Node: test.name}.Append(nil)
			if err := new(Challenge).Decode(src); (err == nil) != test.ok {
				t.Errorf("challenge, version %d: %q: %v, want ok: %t", version, test.name, err, test.ok)
			}
		}
	}
}

// The flags have the numbers of OTP's dist.hrl, from which the list was made.
func TestFlagNumbers(t *testing.T) {
	numbers := make(map[string]Flags)
	f, err := os.Open("testdata/flags.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, digits, _ := strings.Cut(lines.Text(), "\t")
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers[name] = Flags(n)
	}
	for _, f := range flagNames {
		if numbers[f.name] != f.flag {
			t.Errorf("%s: %#x, want %#x", f.name, uint64(f.flag), uint64(numbers[f.name]))
		}
		delete(numbers, f.name)
	}
	for name, flag := range numbers { // those that we do not define
		if Offered&flag != 0 {
			t.Errorf("%s is offered", name)
		}
	}
}

// Offered contains the flags that each release requires, according to its
// erts_internal:get_dflags(), and no flag that the connection does not implement.
func TestOffered(t *testing.T) {
	for release, demanded := range map[string]Flags{
		"OTP 23": 0x50184,
		"OTP 25": 0x1070f94,
		"OTP 27": 0x403070f94,
	} {
		if !Offered.Has(demanded) {
			t.Errorf("%s also requires %#x", release, demanded&^Offered)
		}
	}
	not := Published | DistHdrAtomCache | SendSender | ExitPayload | NameMe
	if Offered&not != 0 {
		t.Errorf("flags are offered that are not implemented: %#x", Offered&not)
	}
}

var flagNames = []struct {
	flag Flags
	name string
}{
	{Published, "PUBLISHED"}, {ExtendedReferences, "EXTENDED_REFERENCES"}, {DistMonitor, "DIST_MONITOR"},
	{FunTags, "FUN_TAGS"}, {DistMonitorName, "DIST_MONITOR_NAME"}, {NewFunTags, "NEW_FUN_TAGS"},
	{ExtendedPidsPorts, "EXTENDED_PIDS_PORTS"}, {ExportPtrTag, "EXPORT_PTR_TAG"}, {BitBinaries, "BIT_BINARIES"},
	{NewFloats, "NEW_FLOATS"}, {DistHdrAtomCache, "DIST_HDR_ATOM_CACHE"}, {SmallAtomTags, "SMALL_ATOM_TAGS"},
	{UTF8Atoms, "UTF8_ATOMS"}, {MapTag, "MAP_TAG"}, {BigCreation, "BIG_CREATION"}, {SendSender, "SEND_SENDER"},
	{BigSeqtraceLabels, "BIG_SEQTRACE_LABELS"}, {ExitPayload, "EXIT_PAYLOAD"}, {Handshake23, "HANDSHAKE_23"},
	{UnlinkID, "UNLINK_ID"}, {Mandatory25Digest, "MANDATORY_25_DIGEST"}, {Spawn, "SPAWN"}, {NameMe, "NAME_ME"},
	{V4NC, "V4_NC"}, {Alias, "ALIAS"},
}

// Decode leaves nothing of an earlier message.
func TestDecodeAgain(t *testing.T) {
	m := Challenge{Version: 6, Flags: Offered, Challenge: 1, Creation: 2, Node: "a@b"}
	old := Challenge{Version: 5, Challenge: 3, Node: "b@c"}
	if err := m.Decode(old.Append(nil)); err != nil || m != old {
		t.Errorf("%+v, %v, want %+v", m, err, old)
	}
}

func (m complement) Append(dst []byte) []byte {
	dst = append(dst, tagComplement)
	dst = binary.BigEndian.AppendUint32(dst, m.High)
	return binary.BigEndian.AppendUint32(dst, m.Creation)
}
