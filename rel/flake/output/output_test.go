package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"unicode"
)

func TestOutput(t *testing.T) {
	r, w := io.Pipe()
	o := New(w)
	const lines = 2 * maxQueued
	for i := range lines {
		fmt.Fprintf(o, "line %d\n", i)
	}
	read := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		read <- string(all)
	}()
	o.Close()
	o.Write([]byte("line after the end\n"))
	<-o.done
	w.Close()
	all := <-read
	var dropped int
	if _, rest, ok := strings.Cut(all, "\n"); ok {
		fmt.Sscanf(rest, "%d lines dropped", &dropped)
	}
	if kept := strings.Count(all, "line "); dropped == 0 || kept+dropped != lines {
		t.Errorf("%d lines and %d dropped, of %d:\n%.200s", kept, dropped, lines, all)
	}
}

func TestIsTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if IsTerminal(w) || IsTerminal(new(bytes.Buffer)) {
		t.Error("a pipe or a buffer is a terminal")
	}
}

// Escaping does not change what JSON decodes to.
func TestPrintJSON(t *testing.T) {
	const evil = "\nforged\x1b[2J\u009b2J\r\u202e\U000e0001"
	var b, indented bytes.Buffer
	if err := PrintJSON(&indented, []int{1}, "  "); err != nil || indented.String() != "[\n  1\n]\n" {
		t.Errorf("%q, %v", &indented, err)
	}
	if err := PrintJSON(&b, math.NaN(), ""); err == nil || b.Len() > 0 {
		t.Errorf("NaN is %q, %v", &b, err)
	}
	if err := PrintJSON(&b, evil, ""); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("prints %q", b.String())
	}
	var got string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != evil {
		t.Errorf("%q, %v", got, err)
	}
}
