// Package certs turns the files of a node's certificate into TLS settings, and again
// when the files have changed: renewing a certificate needs no restart.
//
// Start at [Open]. The next connection sees a change. If the new files are invalid,
// that is logged once and the old ones stay in use. Existing connections are
// unaffected.
//
// Not supported: encrypted keys, revocation.
package certs
