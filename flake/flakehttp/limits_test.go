package flakehttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/flakeserver"
)

// listening gives the URL of a server.
func listening(t *testing.T) string {
	t.Helper()
	generator, err := flake.NewGenerator(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Generators: []Generator{{Name: "flake", Server: &flakeserver.Server{IDs: flakeserver.Flake(generator)}}}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(l)
	t.Cleanup(func() { s.Stop(context.Background()) })
	return "http://" + l.Addr().String()
}

func TestTooManyStreams(t *testing.T) {
	url := listening(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	events := func() int {
		answer, err := client.Get(url + "/events")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer.StatusCode
	}
	for range MaxStreams {
		if status := events(); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	if status := events(); status != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", status)
	}
}

func TestLongHeader(t *testing.T) {
	r, err := http.NewRequest(http.MethodGet, listening(t)+"/v1/ids", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X", strings.Repeat("x", MaxHeader+4096))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(answer.Status)
	}
}

// Of a listener with two places the third caller is let in once one has gone.
func TestLimitListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limitListener(inner, 2)
	var dialled, accepted []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		dialled = append(dialled, c)
	}
	for range 2 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, c)
	}
	third := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		third <- c
	}()
	if n := len(l.(*limited).places); n != 2 {
		t.Fatalf("%d places are taken, want 2", n)
	}
	accepted[0].Close()
	accepted[0].Close() // the place is given back once
	c := <-third
	if _, err := dialled[2].Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(io.LimitReader(c, 1)); string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	go func() {
		_, err := l.Accept()
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after the end: %v", err)
		}
		close(third)
	}()
	l.Close()
	<-third
	c.Close()
	accepted[1].Close()
}
