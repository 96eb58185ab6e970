// Package clienttest provides a node for testing programs that use package client. The node
// runs in the test's process and needs no socket or setup.
//
//	node := clienttest.New()
//	ids := client.NewIDs[flake.ID](node, "flake")
//	id, err := ids.Next(ctx)
//
// The code of a real node makes the ids and answers the calls. So ids are unique, ascend and can
// be leased, and arguments out of range are refused. [Node.Step] changes the clock, and
// [Node.Fail] makes calls fail.
package clienttest

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/idhttp"
)

// Node is a [client.Door] to a private node, which has the generator "flake" with a random
// worker. It is safe for concurrent use.
type Node struct {
	client.Door

	ahead   atomic.Int64 // how far the node's clock is ahead of the machine's, in milliseconds
	failure atomic.Pointer[error]
	server  atomic.Pointer[idhttp.Door]

	mu         sync.Mutex // guards generators
	generators []idhttp.Generator
}

// New starts a node.
func New() *Node {
	n := new(Node)
	system := flake.SystemClock()
	ids, err := flake.NewGenerator(flake.RandomWorker(), flake.Options{
		Clock: func() uint64 { return system() + uint64(n.ahead.Load()) },
	})
	if err != nil {
		panic(err) // cannot happen with this worker
	}
	n.Add("flake", formats.Flake(ids))
	n.Door, err = client.NewHTTP("http://localhost", client.HTTPOptions{Client: &http.Client{Transport: transport{n}}})
	if err != nil {
		panic(err) // cannot happen with this URL
	}
	return n
}

// Add adds a generator of any format. Functions such as [formats.Snowflake] and
// [formats.UUIDv7] make the Source from a generator that the test has opened.
func (n *Node) Add(name string, ids formats.Source) {
	n.mu.Lock()
	defer n.mu.Unlock()
	log := slog.New(slog.DiscardHandler)
	n.generators = append(slices.Clip(n.generators), idhttp.Generator{
		Name: name, Server: &idserver.Server{IDs: ids, Started: time.Now()},
	})
	n.server.Store(idhttp.New(idhttp.Options{Generators: n.generators, Log: log}))
}

// Step moves the clock of the generator "flake" forward by d, or back if d is negative. After
// a step back, calls fail with [flake.ErrClockBackwards] until the clock has caught up.
func (n *Node) Step(d time.Duration) { n.ahead.Add(d.Milliseconds()) }

// Fail makes all calls fail with err, as if the node could not be reached, until Fail is
// called with nil. Errors that real nodes cause include [client.ErrBusy], [client.ErrLost] and
// [flake.ErrTimestampNotSaved].
func (n *Node) Fail(err error) { n.failure.Store(&err) }

// transport passes requests to the node.
type transport struct{ node *Node }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.node.failure.Load(); err != nil && *err != nil {
		return nil, &net.OpError{Op: "dial", Net: "clienttest", Err: *err} // means that the request was not sent
	}
	served, answer := r.Clone(r.Context()), httptest.NewRecorder()
	served.Body = http.NoBody // a server's request never has a nil Body
	t.node.server.Load().ServeHTTP(answer, served)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}
