// Package certs turns the files of a node's certificate into TLS settings, and
// does so again when the files have changed: a certificate is renewed without a
// restart.
//
// Start at [Open]. A change is seen at the next connection. If the new files are
// of no use, that is logged once and the old ones stay in use. Connections that
// exist are left alone.
//
// Not supported: encrypted keys, revocation.
package certs
