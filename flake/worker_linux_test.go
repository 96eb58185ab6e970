package flake

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A process that is out of file descriptors cannot list the network interfaces. It must not
// conclude that there are none: it would then make a new worker id, or keep another machine's.
func TestNoInterfaces(t *testing.T) {
	m, err := OpenMarks(filepath.Join(t.TempDir(), "timestamp"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: usual.Max}); err != nil {
		t.Fatal(err)
	}
	_, _, ofInterface := InterfaceWorker("")
	_, ofCard := NetworkCard("")
	w, made, ofFile := KeptWorker(m, "")
	for what, err := range map[string]error{
		"InterfaceWorker": ofInterface, "NetworkCard": ofCard, "KeptWorker": ofFile,
	} {
		if err == nil || !strings.Contains(err.Error(), "listing network interfaces") ||
			!strings.Contains(err.Error(), "set worker_id instead") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if w != 0 || made {
		t.Errorf("KeptWorker: %v, made %v", w, made)
	}
}
