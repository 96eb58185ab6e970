// Package peertest checks the id formats against other implementations. It is a separate module,
// so that users of the formats do not depend on those implementations.
package peertest
