package epmd

import (
	"reflect"
	"strings"
	"testing"
)

var flake = Node{Name: "flake", Port: 4711, Type: Normal, Highest: 6, Lowest: 5}

// The bytes come from conversations with the daemon of OTP 25.
var messages = []struct {
	m    message
	wire string
}{
	{&alive2Req{flake}, "x\x12\x67M\x00\x00\x06\x00\x05\x00\x05flake\x00\x00"},
	{&alive2Req{Node{Name: "é", Port: 1, Type: Hidden, Highest: 5, Lowest: 5, Extra: []byte("e")}},
		"x\x00\x01H\x00\x00\x05\x00\x05\x00\x02\xc3\xa9\x00\x01e"},
	{&alive2Resp{true, 0, 0x6b00c4c0}, "v\x00\x6b\x00\xc4\xc0"},
	{&alive2Resp{true, refused, 99}, "v\x01\x00\x00\x00\x63"},
	{&alive2Resp{false, 0, 2}, "y\x00\x00\x02"},
	{&portPlease2Req{"flake"}, "zflake"},
	{&port2Resp{node: flake}, "w\x00\x12\x67M\x00\x00\x06\x00\x05\x00\x05flake\x00\x00"},
	{&port2Resp{result: refused}, "w\x01"},
}

func TestMessages(t *testing.T) {
	for _, tt := range messages {
		if got := tt.m.Append([]byte("before")); string(got) != "before"+tt.wire {
			t.Errorf("%+v: Append = %q, want %q", tt.m, got, tt.wire)
		}
		back := fresh(tt.m)
		if err := back.Decode([]byte(tt.wire)); err != nil || !reflect.DeepEqual(back, tt.m) {
			t.Errorf("Decode(%q) = %+v, %v, want %+v", tt.wire, back, err, tt.m)
		}
	}
}

func TestDecodeAcceptsWhatTheDaemonAccepts(t *testing.T) {
	var alive alive2Req
	if err := alive.Decode([]byte("x\x12\x67M\x00\x00\x06\x00\x05\x00\x05flake\x00\x00tail")); err != nil {
		t.Error(err)
	}
	var please portPlease2Req
	if err := please.Decode([]byte("zflake\x00")); err != nil || please.name != "flake" {
		t.Errorf("decoded %+v, %v", please, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	long := strings.Repeat("n", 256)
	for _, tt := range []struct {
		m    message
		src  string
		want string
	}{
		{&alive2Req{}, "", "epmd: ALIVE2_REQ: tag: 1 bytes needed, but only 0 left"},
		{&alive2Req{}, "z", "epmd: ALIVE2_REQ: tag: 122, not 120"},
		{&alive2Req{}, "x\x12\x67M\x00\x00\x06\x00\x05\xff\xffflake\x00\x00",
			"epmd: ALIVE2_REQ: name: 65535 bytes needed, but only 7 left"},
		{&alive2Req{}, "x\x12\x67M\x00\x00\x06\x00\x05\x00\x00\x00\x00", "epmd: ALIVE2_REQ: name: empty"},
		{&alive2Req{}, "x\x12\x67M\x00\x00\x06\x00\x05\x00\x01f\x00\x09",
			"epmd: ALIVE2_REQ: extra: 9 bytes needed, but only 0 left"},
		{&alive2Req{}, "x\x12\x67M\x00\x00\x06\x00\x05\x00\x01f\xff\xff",
			"epmd: ALIVE2_REQ: extra: 65535 bytes, at most 1020 allowed"},
		{&alive2Req{}, "x\x12\x67M\x00\x00\x06\x00\x05\x00\x01f",
			"epmd: ALIVE2_REQ: extra length: 2 bytes needed, but only 0 left"},
		{&portPlease2Req{}, "z", "epmd: PORT_PLEASE2_REQ: name: empty"},
		{&portPlease2Req{}, "z\xff", `epmd: PORT_PLEASE2_REQ: name: "\xff" is not UTF-8`},
		{&portPlease2Req{}, "za\nname b", `epmd: PORT_PLEASE2_REQ: name: "a\nname b" contains a control character`},
		{&portPlease2Req{}, "z" + long, "epmd: PORT_PLEASE2_REQ: name: 256 bytes, at most 255 allowed"},
		{&port2Resp{}, "w", "epmd: PORT2_RESP: result: 1 bytes needed, but only 0 left"},
		{&alive2Resp{}, "v\x00\x00\x00", "epmd: ALIVE2_X_RESP: creation: 4 bytes needed, but only 2 left"},
		{&alive2Resp{}, "?", "epmd: ALIVE2_RESP: tag: 63, not 121"},
	} {
		if err := tt.m.Decode([]byte(tt.src)); err == nil || err.Error() != tt.want {
			t.Errorf("Decode(%.40q) = %v, want %s", tt.src, err, tt.want)
		}
	}
}

func fresh(m message) message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)
}

func fuzz(f *testing.F, m message) {
	seeds := 0
	for _, tt := range messages {
		if reflect.TypeOf(tt.m) == reflect.TypeOf(m) {
			seeds++
			f.Add([]byte(tt.wire))
		}
	}
	if seeds == 0 {
		f.Fatal("no seed")
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		a, b := fresh(m), fresh(m)
		if a.Decode(src) != nil {
			return
		}
		wire := a.Append(nil)
		if err := b.Decode(wire); err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%q is decoded as %+v, then as %+v, %v", src, a, b, err)
		}
		if len(wire) > len(src) {
			t.Errorf("%q is encoded to more bytes: %q", src, wire)
		}
	})
}

func FuzzAlive2Req(f *testing.F)      { fuzz(f, &alive2Req{}) }
func FuzzAlive2Resp(f *testing.F)     { fuzz(f, &alive2Resp{}) }
func FuzzPortPlease2Req(f *testing.F) { fuzz(f, &portPlease2Req{}) }
func FuzzPort2Resp(f *testing.F)      { fuzz(f, &port2Resp{}) }
