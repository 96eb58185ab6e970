package etf

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFormatRawLimit(t *testing.T) {
	for _, test := range []struct {
		src   string
		limit int
		want  string
	}{
		{"w\x05hello", -1, ""},
		{"w\x05hello", 0, ""},
		{"w\x05hello", 1, "."},
		{"w\x05hello", 3, "..."},
		{"w\x05hello", 4, "h..."},
		{"w\x05hello", 5, "hello"},
		{"\x83w\x05hello", 5, "hello"},
		{"w\x05hellox", 9, "hello..."},
		{"k\x00\x02\xe9\xe9", 6, `"éé"`},
		{"k\x00\x02\xe9\xe9", 5, `"...`},
		{"h\x03w\x02oka\x01m\x00\x00\x00\x05hello", 100, `{ok,1,<<"hello">>}`},
		{"h\x03w\x02oka\x01m\x00\x00\x00\x05hello", 13, `{ok,1,<<"h...`},
		{"h\x02w\x02ok\x00", 100, "{ok,..."},
		{"", 100, "..."},
		{"o\x00\x00\x20\x01\x00" + strings.Repeat("\x01", 8193), 1 << 20, "..."},
		{"u\x00\x00\x00\x01" + pidTerm + "w\x01ma\x01a\x02h\x01j", 100, "#Fun<m.1.2>"},
		{"u\x00\x00\x00\x00" + pidTerm + "w\x02m\na\x01a\x02", 100, `#Fun<m\n.1.2>`},
		{"l\x00\x00\x00\x00h\x00", 100, "{}"},
	} {
		got := string(FormatRaw([]byte("dst"), []byte(test.src), test.limit))
		if got != "dst"+test.want {
			t.Errorf("%.40q, %d: %.80s, want %s", test.src, test.limit, got, test.want)
		}
	}
}

// However short the limit, the text begins as the whole text does, and is UTF-8.
func TestFormatRawCuts(t *testing.T) {
	for _, v := range vectors(t, "vectors.tsv") {
		for limit := range min(len(v.text), 300) {
			got := string(FormatRaw(nil, v.src, limit))
			text, cut := strings.CutSuffix(got, "...")
			switch {
			case len(got) > limit || !utf8.ValidString(got):
				t.Errorf("%.60s, %d: %q", v.text, limit, got)
			case limit >= 3 && (!cut || !strings.HasPrefix(v.text, text)):
				t.Errorf("%.60s, %d: %q", v.text, limit, got)
			}
		}
	}
}
