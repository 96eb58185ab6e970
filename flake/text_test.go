package flake

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"testing"
)

type vector struct {
	Time     string            `json:"time_ms"`
	Worker   string            `json:"worker"`
	Sequence uint16            `json:"sequence"`
	ID       string            `json:"id_hex"`
	Bases    map[string]string `json:"bases"`
}

// vectors are ids with their text in every base, taken from the original.
func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/bases.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(data, &all); err != nil || len(all) == 0 {
		t.Fatalf("testdata/bases.json: %d vectors, %v", len(all), err)
	}
	return all
}

func TestTextOfOriginal(t *testing.T) {
	for _, v := range vectors(t) {
		milli, err := strconv.ParseUint(v.Time, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		worker, err := strconv.ParseUint(v.Worker, 16, 48)
		if err != nil {
			t.Fatal(err)
		}
		id := Make(milli, Worker(worker), v.Sequence)
		if got := hex.EncodeToString(id[:]); got != v.ID {
			t.Errorf("id %s, want %s", got, v.ID)
		}
		if id.Milli() != milli || id.Worker() != Worker(worker) || id.Sequence() != v.Sequence {
			t.Errorf("%s comes apart as %d, %v, %d", v.ID, id.Milli(), id.Worker(), id.Sequence())
		}
		if len(v.Bases) != MaxBase-MinBase+1 {
			t.Errorf("%s: %d bases", v.ID, len(v.Bases))
		}
		for name, want := range v.Bases {
			base, err := strconv.Atoi(name)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := id.Text(base); got != want || err != nil {
				t.Errorf("%s in base %d: %q, %v, want %q", v.ID, base, got, err, want)
			}
		}
	}
}
