package ergo

import (
	"io"
	"net"

	"github.com/ergo-services/ergo/lib"
	ergonode "github.com/ergo-services/ergo/node"
)

// closed is the handshake of a port that is closed to all. A node of Ergo has to
// listen somewhere.
type closed struct{ ergonode.Handshake }

func (*closed) Init(string, uint32, ergonode.Flags) error { return nil }

// Accept is called for whoever comes. Of io.EOF Ergo makes no line in its log.
func (*closed) Accept(net.Addr, lib.NetReadWriter, bool, string) (ergonode.HandshakeDetails, error) {
	return ergonode.HandshakeDetails{}, io.EOF
}
