package main

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"

	"github.com/flake-go/flake/flake"
)

// claim makes sure that no other node on this machine has the worker id: the
// file at timestamp_path would not tell, for each may have its own. The name
// that it takes, a socket in Linux's abstract namespace, is gone with the
// process, however that ends. Elsewhere nothing is claimed.
func claim(worker flake.Worker) (release func() error, err error) {
	if runtime.GOOS != "linux" {
		return func() error { return nil }, nil
	}
	l, err := net.Listen("unix", fmt.Sprintf("@flake-worker-%012x", uint64(worker)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("worker_id %s: another node on this machine has it, and both would hand out the same ids; "+
			"stop that one first, or give this one a worker_id of its own", worker)
	}
	if err != nil {
		return nil, fmt.Errorf("worker_id %s: %w", worker, err)
	}
	return l.Close, nil
}
