package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/client/clienttest"
	"github.com/flake-go/flake/flake"
)

func Example() {
	node := client.NewNode("flake@127.0.0.1", client.Dialer{Cookie: "flake"})
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	id, err := ids.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id, id.Time())
}

// A function that needs ids takes a [flake.Nexter]. The program's setup decides on their
// source.
func Example_nexter() {
	ctx := context.Background()
	node := clienttest.New()
	defer node.Close()

	local, err := flake.NewGenerator(flake.RandomWorker(), flake.Options{}) // or flake.Open
	if err != nil {
		log.Fatal(err)
	}
	remote := client.NewIDs[flake.ID](node, "flake")
	leased, err := remote.Leased(client.LeaseOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer leased.Close()

	for _, ids := range []flake.Nexter[flake.ID]{local, remote, leased} {
		id, err := ids.Next(ctx)
		fmt.Println(len(id.String()), err)
	}
	// Output:
	// 22 <nil>
	// 22 <nil>
	// 22 <nil>
}

func ExampleNewHTTP() {
	node, err := client.NewHTTP("http://127.0.0.1:8465", client.HTTPOptions{Token: "0123456789abcdef"})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	id, err := client.NewIDs[flake.ID](node, "flake").Next(context.Background())
	fmt.Println(id, err)
}

func ExampleNode_Apply() {
	node := client.NewNode("flake@127.0.0.1", client.Dialer{Cookie: "flake"})
	defer node.Close()
	name, err := node.Apply(context.Background(), "erlang", "node", nil)
	fmt.Println(name, err)
}

func ExampleNewFailover() {
	// In place of client.NewNode.
	first, second := clienttest.New(), clienttest.New()

	nodes := client.NewFailover(first, second)
	defer nodes.Close()
	ids := client.NewIDs[flake.ID](nodes, "flake")

	a, _ := ids.Next(context.Background())
	first.Fail(errors.New("the machine is gone"))
	b, err := ids.Next(context.Background())
	fmt.Println(err, a.Worker() == b.Worker(), a.Compare(b))
	// Output: <nil> false -1
}

func ExampleIDs_Lease() {
	node := clienttest.New()
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")

	runs, err := ids.Lease(context.Background(), 1000)
	if err != nil {
		log.Fatal(err)
	}
	n := 0
	for _, run := range runs {
		for range run.All() {
			n++
		}
	}
	fmt.Println(n)
	// Output: 1000
}

func ExampleIDs_Leased() {
	node := clienttest.New()
	defer node.Close()
	leased, err := client.NewIDs[flake.ID](node, "flake").Leased(client.LeaseOptions{Size: 100, MaxAge: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer leased.Close()

	var last flake.ID
	for range 1000 {
		id, err := leased.Next(context.Background()) // makes one request for 100 ids
		if err != nil || id.Compare(last) <= 0 {
			log.Fatal(id, err)
		}
		last = id
	}
	fmt.Println(last.IsZero())
	// Output: false
}

func ExampleIDs_Span() {
	node := clienttest.New()
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")

	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	lowest, highest, err := ids.Span(context.Background(), day, day.AddDate(0, 0, 1).Add(-time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("WHERE id BETWEEN", lowest.UUID(), "AND", highest.UUID())
	// Output:
	// WHERE id BETWEEN 0000019c-1159-7000-0000-000000000000 AND 0000019c-167f-cbff-ffff-ffffffffffff
}
