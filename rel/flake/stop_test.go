package main

import (
	"syscall"
	"testing"
)

func TestStop(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			daemon := startDaemon(t, port)
			n := startNode(t, port)
			caller := spawnErl(t, port, nil, "stop")
			caller.await("READY")

			n.signal(s)
			if status := n.wait(); status != 0 {
				t.Errorf("exit status %d", status)
			}
			wantChecks(t, caller, "stop")
			mustBeClosed(t, n.addr)
			await(t, "forgotten by EPMD", func() bool { return len(daemon.names()) == 0 })
		})
	}
}
