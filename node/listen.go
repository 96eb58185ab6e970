package node

import (
	"context"
	"fmt"
	"net"
	"strings"
)

// listen opens the port for other nodes. A name that stands for the loopback is
// listened for on the loopback alone.
func listen(ctx context.Context, o Options) (net.Listener, error) {
	addr := o.Listen
	if addr == "" {
		_, host, ok := strings.Cut(o.Name, "@")
		if !ok {
			return nil, fmt.Errorf("node name %q: want name@host", o.Name)
		}
		addr = net.JoinHostPort(host, "0")
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", o.Name, err)
	}
	return l, nil
}
