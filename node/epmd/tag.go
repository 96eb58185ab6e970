package epmd

import "fmt"

// Tag is the first byte of a request or reply. Only NAMES_RESP has none.
type Tag byte

// The requests, each preceded on the stream by its length in two bytes.
const (
	TagDumpReq        Tag = 100 // nothing
	TagKillReq        Tag = 107 // nothing
	TagNamesReq       Tag = 110 // nothing
	TagStopReq        Tag = 115 // name
	TagAlive2Req      Tag = 120 // port16, type8, protocol8, highest16, lowest16, len16, name, len16, extra
	TagPortPlease2Req Tag = 122 // name
)

// The replies, without a length.
const (
	TagAlive2XResp Tag = 118 // result8, creation32; to nodes whose highest version is 6 or more
	TagPort2Resp   Tag = 119 // result8, then if it is 0 what ALIVE2_REQ holds
	TagAlive2Resp  Tag = 121 // result8, creation16
)

var tagNames = map[Tag]string{
	TagDumpReq:        "DUMP_REQ",
	TagKillReq:        "KILL_REQ",
	TagNamesReq:       "NAMES_REQ",
	TagStopReq:        "STOP_REQ",
	TagAlive2XResp:    "ALIVE2_X_RESP",
	TagPort2Resp:      "PORT2_RESP",
	TagAlive2Req:      "ALIVE2_REQ",
	TagAlive2Resp:     "ALIVE2_RESP",
	TagPortPlease2Req: "PORT_PLEASE2_REQ",
}

// String returns the chapter's name for the message.
func (t Tag) String() string {
	if s, ok := tagNames[t]; ok {
		return s
	}
	return fmt.Sprintf("Tag(%d)", byte(t))
}

// NodeType says whether a node takes part in the full mesh.
type NodeType byte

const (
	Hidden NodeType = 72 // 'H', a C node or one that wants to stay out of the mesh
	Normal NodeType = 77 // 'M', an Erlang node
)

// Result is the second byte of a reply.
type Result byte

const (
	ResultOK      Result = 0
	ResultRefused Result = 1 // the name is taken (ALIVE2_RESP) or unknown (PORT2_RESP); any value above 0 means it
)

// The versions of the distribution protocol that a node offers.
const (
	Version5 uint16 = 5 // until OTP 24
	Version6 uint16 = 6 // 32-bit creations and the 'N' handshake, since OTP 23
)

const (
	maxName  = 255  // bytes of a node's name before the @
	maxExtra = 1020 // bytes of extra, the real daemon's limit
)
