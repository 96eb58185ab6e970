package ergo

import (
	"io"
	"net"

	"github.com/ergo-services/ergo/lib"
	ergonode "github.com/ergo-services/ergo/node"
)

// closed is the handshake of a port closed to all. An Ergo node must listen somewhere.
type closed struct{ ergonode.Handshake }

func (*closed) Init(string, uint32, ergonode.Flags) error { return nil }

// Accept is called for every caller. Ergo does not log io.EOF.
func (*closed) Accept(net.Addr, lib.NetReadWriter, bool, string) (ergonode.HandshakeDetails, error) {
	return ergonode.HandshakeDetails{}, io.EOF
}
