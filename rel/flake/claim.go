package main

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"
)

// claim makes sure that no other generator on this machine has what tells its
// ids from all others, such as the worker id: the file at timestamp_path would not
// tell, for each may have its own. The name that it takes, a socket in Linux's
// abstract namespace, is gone with the process, however that ends. Elsewhere
// nothing is claimed.
func claim(who string) (release func() error, err error) {
	if runtime.GOOS != "linux" {
		return func() error { return nil }, nil
	}
	l, err := net.Listen("unix", "@flake "+who)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: another generator on this machine has it, and both would hand out the same ids; "+
			"stop that one first, or give this one another", who)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", who, err)
	}
	return l.Close, nil
}
