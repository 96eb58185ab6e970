package generators

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

// A claim whose owner cannot be asked keeps nobody from a chosen id.
func TestClaimThatIsFull(t *testing.T) {
	const id = 15
	here := place{Place: formats.Place{Key: "here", Space: "test " + rand.Text(), First: id, Last: id}}
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
	for _, here.chosen = range []bool{false, true} {
		var log strings.Builder
		release, err := claim(here, slog.New(slog.NewTextHandler(&log, nil)))
		if (err == nil) != here.chosen || strings.Contains(log.String(), name) != here.chosen {
			t.Errorf("chosen: %t: %v, %s", here.chosen, err, &log)
		}
		if err == nil {
			release()
		}
	}
}
