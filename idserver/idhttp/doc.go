// Package idhttp is flake's door for HTTP: a URL becomes a call of a method of
// [idserver.Server], and what that returns a body. What can be asked is said in
// openapi.yaml, beside this file and served as /openapi.yaml.
//
// A request passes
//
//	server.go     the listener: how many connections, how long, how large
//	door.go       the host, the token, other sites' pages, the method, the count
//	parameters.go query and form, each parameter known and given once
//	accept.go     the media type of the answer (RFC 9110, section 12.5.1)
//	ids.go ...    to a method of the generator's
//	encode.go     runs of ids as text, JSON or bytes, a buffer at a time
//	problem.go    or what is wrong, and what is allowed (RFC 9457)
//
// Besides that it shows what the node is: metrics.go for Prometheus, report.go for other
// programs, page.go and events.go for people. lately.go, takers.go, steps.go and recent.go
// keep what they tell of the last while.
//
// Start at [New]. Not supported: HTTP/2, as one request is one answer here.
package idhttp
