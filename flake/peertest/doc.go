// Package peertest holds the formats of ids to other implementations of them. It
// is a module of its own, so that those who use the formats need not have these.
package peertest
