package flake

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	const callers, each = 8, 20_000
	ids := make([][]ID, callers)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			for range each {
				ids[i] = append(ids[i], New())
			}
		})
	}
	all.Wait()
	seen := make(map[ID]bool)
	worker := New().Worker()
	for _, some := range ids {
		for i, id := range some {
			if seen[id] || id.Worker() != worker || i > 0 && id.Compare(some[i-1]) <= 0 {
				t.Fatalf("%v after %v, of worker %v, seen before: %t", id, some[max(i, 1)-1], worker, seen[id])
			}
			seen[id] = true
		}
	}
	if worker&multicast == 0 {
		t.Errorf("%v may be the address of a network card", worker)
	}
	if now := time.Now(); New().Time().After(now.Add(time.Minute)) || New().Time().Before(now.Add(-time.Minute)) {
		t.Errorf("%v at %v", New().Time(), now)
	}
}

func TestParse(t *testing.T) {
	id := Make(1_700_000_000_000, 0x0200_0000_abcd, 0xef01)
	hexadecimal := strings.ReplaceAll(id.UUID(), "-", "")
	for _, text := range []string{
		id.String(), id.UUID(), strings.ToUpper(id.UUID()), hexadecimal, strings.ToUpper(hexadecimal),
		"0x" + hexadecimal, `\x` + hexadecimal,
	} {
		if got, err := Parse(text); got != id || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	short, _ := id.Text(62)
	for text, at := range map[string]int{
		"":                             0,
		short:                          0, // may be a snowflake in decimal as well
		id.String() + "0":              0,
		"zzzzzzzzzzzzzzzzzzzzzz":       0,
		"0X" + hexadecimal:             0,
		"0x" + hexadecimal[1:]:         0,
		"0x" + hexadecimal[1:] + "g":   33,
		hexadecimal[1:] + "-":          31,
		id.UUID()[:35] + "_":           35,
		"0000AboKHPfE7cAx9OrC_Z":       20,
		strings.Repeat("0", 10_000):    0,
		" " + id.String():              0,
		"{" + id.UUID()[1:35] + "}":    0,
		"018bcfe568000200000000010007": 0,
	} {
		var where *ParseError
		if got, err := Parse(text); !errors.As(err, &where) || where.At != at || got != (ID{}) || len(err.Error()) > 250 {
			t.Errorf("%q: %v, %v, want an error at %d", text, got, err, at)
		}
	}
}

// What go doc shows of a type it shows where the type is declared.
func TestDeclaredHere(t *testing.T) {
	const here = "github.com/flake-go/flake/flake"
	for _, of := range []reflect.Type{reflect.TypeFor[Options](), reflect.TypeFor[ParseError]()} {
		if of.PkgPath() != here || of.NumField() == 0 {
			t.Errorf("%v is of %s", of, of.PkgPath())
		}
	}
}
