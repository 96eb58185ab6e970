package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/flake-go/flake/flake/formats"
)

// A claim whose owner does not answer does not keep a node from using a configured id.
func TestClaimThatIsFull(t *testing.T) {
	const id = 15
	here := formats.Range{Key: "here", Space: "test " + rand.Text(), First: id, Last: id}
	name := fmt.Sprintf("%s%s/%x-%x/full", claimPrefix, here.Space, id, id)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: name}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		var c net.Conn
		if c, err = net.Dial("unix", name); err == nil {
			defer c.Close()
		}
	}
	for _, chosen := range []bool{false, true} {
		var log strings.Builder
		release, err := claim(here, chosen, slog.New(slog.NewTextHandler(&log, nil)))
		if (err == nil) != chosen || strings.Contains(log.String(), name) != chosen {
			t.Errorf("chosen: %t: %v, %s", chosen, err, &log)
		}
		if err == nil {
			release()
		}
	}
}
