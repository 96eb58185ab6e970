package original

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// detsFiles returns the files that testdata/make-dets made, by OTP release and kind: "otp25/killed".
func detsFiles(tb testing.TB) map[string][]byte {
	tb.Helper()
	packed, err := os.ReadFile("testdata/dets.tar.gz")
	if err != nil {
		tb.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(unzipped); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		data, readErr := io.ReadAll(archive)
		if err := errors.Join(err, readErr); err != nil {
			tb.Fatal(err)
		}
		if len(data) > 0 {
			files[strings.TrimPrefix(entry.Name, "./")] = data
		}
	}
	return files
}

// written is the time that make-dets.erl writes.
const written = 1700000000123

func TestReadDets(t *testing.T) {
	modified := time.UnixMilli(written - 500)
	want := map[string]struct {
		last   uint64
		closed bool
		fault  string
	}{
		"closed":     {written, true, ""},
		"killed":     {written, false, ""},
		"repaired":   {written, true, ""},
		"reopened":   {written, true, ""},
		"stale":      {written, false, ""},
		"empty":      {0, true, ""},
		"unwritten":  {0, false, ""},
		"crowd":      {written, true, ""},
		"future":     {4102444800000, true, ""},
		"grown":      {0, false, "its number of slots is 512"},
		"bag":        {0, false, "its type is 2"},
		"keypos":     {0, false, "its position of the key is 2"},
		"other_key":  {0, false, "it has 1 objects, and none is {last_timestamp, T}"},
		"no_integer": {0, false, "its time is never"},
		"great":      {0, false, "its time is 1208925819614629174706176"},
		"negative":   {0, false, "its time is -1"},
	}
	releases := map[string]int{}
	for name, data := range detsFiles(t) {
		release, how, _ := strings.Cut(name, "/")
		releases[release]++
		path := filepath.Join(t.TempDir(), how)
		if err := errors.Join(os.WriteFile(path, data, 0o600), os.Chtimes(path, modified, modified)); err != nil {
			t.Fatal(err)
		}
		c, ok := want[how]
		got, err := ReadDets(path)
		switch {
		case !ok:
			t.Errorf("%s is not expected", name)
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) || !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("%s: %v, want %s", name, err, c.fault)
			}
		case err != nil || got.Last != c.last || got.Closed != c.closed || !got.Modified.Equal(modified):
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c)
		}
	}
	if got := slices.Sorted(maps.Keys(releases)); !slices.Equal(got, []string{"otp23", "otp25", "otp27", "otp29"}) {
		t.Errorf("the files are of the releases %v, want otp23, otp25, otp27 and otp29", got)
	}
}

// The mark is above the time in the file and the time of its last write, by more than the delay of dets.
func TestMark(t *testing.T) {
	for _, c := range []struct {
		last     uint64
		modified int64
		want     uint64
	}{{1000, 500, 6000}, {500, 1000, 6000}, {0, 1000, 6000}, {1000, -1, 6000}} {
		s := State{Last: c.last, Modified: time.UnixMilli(c.modified)}
		if got := s.Mark(); got != c.want {
			t.Errorf("%+v: %d, want %d", s, got, c.want)
		}
	}
}

// A dets file that differs in one place from the original's is refused, with the reason.
func TestDamagedDets(t *testing.T) {
	good := detsFiles(t)["otp25/closed"]
	timeAt := bytes.LastIndex(good, []byte("last_timestamp")) + len("last_timestamp") + 3 // the bytes of its number
	latest := slices.Clone(good)
	copy(latest[timeAt:], "\xfe\xff\xff\xff\xff\x7f")
	if last, closed, err := parseDets(latest); last != latestTime || !closed || err != nil {
		t.Errorf("the latest time: %d, %t, %v", last, closed, err)
	}
	for name, c := range map[string]struct {
		at    int
		bytes string
		fault string
	}{
		"cookie":             {cookieAt, "\x00\xab\xcd\xee", "not a dets file"},
		"version":            {versionAt, "\x00\x00\x00\x08", "its version is 8"},
		"status":             {closedAt, "\x00\x00\x00\x02", "its closed flag is 2"},
		"hash":               {hashAt, "\x00\x00\x00\x00", "its hash function is 0"},
		"split":              {splitAt, "\x00\x00\x00\x01", "that are split is 1"},
		"part":               {partsAt, "\xff\xff\xff\xff", "damaged dets file: bytes 4294967295 to 4294967299 of 5889"},
		"part behind":        {partsAt, "\x00\x00\x17\x00", "damaged dets file: bytes 5888 to 5892 of 5889"},
		"segment":            {slotsBegin, "\xff\xff\xff\x00", "damaged dets file: bytes 4294968320 to 4294968324 of 5889"},
		"slot":               {0xd38 + slot*8 + 4, "\x00\x00\x16\xff", "damaged dets file: bytes 5891 to 5895 of 5889"},
		"no size":            {0xd38 + slot*8, "\x00\x00\x00\x00", "has no last_timestamp"},
		"status of a object": {0x1538 + 4, "\x03\xab\xcd\xef", "the status of its object is 0x3abcdef"},
		"size of an object":  {0x1538 + 8, "\x00\x00\x00\x00", "damaged dets file: bytes 5444 to 5440"},
		"end of an object":   {0x1538 + 8, "\xff\xff\xff\xf8", "an object ends at byte 42949"},
		"key":                {0x1538 + 12 + 6, "L", "has no last_timestamp"},
		"no term":            {0x1538 + 12, "\x82", "its object is not a term"},
		"an empty object":    {0x1538 + 8, "\x00\x00\x00\x04", "its object is not a term"},
		"no elements":        {0x1538 + 8, "\x00\x00\x00\x07\x83h\x00", "damaged"},
		"3 elements":         {0x1538 + 8, "\x00\x00\x00\x0c\x83h\x03jjj\x00\x00\x00", "damaged"},
		"no time":            {timeAt, "\x00\x00\x00\x00\x00\x00", "its time is 0"},
		"a late time":        {timeAt, "\xff\xff\xff\xff\xff\x7f", "its time is 140737488355327"},
	} {
		data := slices.Clone(good)
		copy(data[c.at:], c.bytes)
		if last, _, err := parseDets(data); err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %d, %v, want %s", name, last, err, c.fault)
		}
	}
	for n := range len(good) {
		last, _, err := parseDets(good[:n])
		if err == nil && last != written || err != nil && n > 0x1538+0x28 ||
			n < slotsBegin != (err != nil && strings.Contains(err.Error(), "not a dets file")) {
			t.Errorf("the first %d bytes: %d, %v", n, last, err)
		}
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	most := filepath.Join(dir, "most")
	if err := os.WriteFile(most, make([]byte, MaxFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := second(ReadDets(most)); err == nil || strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	for path, want := range map[string]string{
		dir:                         dir + ": cannot be read: not a regular file",
		filepath.Join(dir, "none"):  filepath.Join(dir, "none") + ": cannot be read: no such file or directory",
		filepath.Join(large, "one"): "not a directory",
		large:                       large + ": the file is 1048577 bytes long; the limit is 1048576",
	} {
		for name, err := range map[string]error{
			"dets": second(ReadDets(path)), "sys.config": ReadSysConfig(path, &Settings{}),
			"vm.args": ReadVMArgs(path, &Settings{}),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
}

func second(_ State, err error) error { return err }

// A file is read or refused, whichever two of its words are replaced and wherever it is cut. Appended bytes change
// nothing. Only two words vary, because a fuzzer gets nowhere with all 6 kB of a file.
func FuzzDets(f *testing.F) {
	files := detsFiles(f)
	names := slices.Sorted(maps.Keys(files))
	for i := range names {
		f.Add(uint8(i), uint16(partsAt), uint32(slotsBegin), uint16(0x1538), uint32(40), uint16(0xffff))
	}
	f.Add(uint8(0), uint16(0x1538+8), uint32(4), uint16(0xd38+slot*8), uint32(1<<31), uint16(0x1560))
	f.Fuzz(func(t *testing.T, which uint8, at1 uint16, word1 uint32, at2 uint16, word2 uint32, end uint16) {
		data := slices.Clone(files[names[int(which)%len(names)]])
		put := func(at uint16, word uint32) {
			if int(at)+4 <= len(data) {
				binary.BigEndian.PutUint32(data[at:], word)
			}
		}
		put(at1, word1)
		put(at2, word2)
		data = data[:min(len(data), int(end))]
		last, closed, err := parseDets(data)
		if err != nil {
			return
		}
		if last > latestTime {
			t.Errorf("the time %d is too late", last)
		}
		if again, still, err := parseDets(append(data, make([]byte, 64)...)); again != last || still != closed ||
			err != nil {
			t.Errorf("%d, %v, and with bytes appended %d, %v, %v", last, closed, again, still, err)
		}
	})
}
