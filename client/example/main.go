// Example gets ids from a flake node in every way that package client offers, over the Erlang
// distribution or, with -url, over HTTP:
//
//	./start.sh -noinput &
//	go run ./client/example
//	go run ./client/example -url http://127.0.0.1:8465
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
)

func main() {
	var (
		name   = flag.String("node", "flake@127.0.0.1", "the `name@host` of the node")
		cookie = flag.String("cookie", "flake", "the cookie of the node")
		url    = flag.String("url", "", "use HTTP, at `URL`")
		most   = flag.Duration("most", 10*time.Second, "the time limit")
	)
	flag.Parse()
	log.SetFlags(0)
	var door client.Door = client.NewNode(*name, client.Dialer{Cookie: *cookie})
	if *url != "" {
		h, err := client.NewHTTP(*url, client.HTTPOptions{})
		if err != nil {
			log.Fatal(err)
		}
		door = h
	}
	defer door.Close()
	ctx, cancel := context.WithTimeout(context.Background(), *most)
	defer cancel()
	if err := show(ctx, client.NewIDs[flake.ID](door, "flake")); err != nil {
		log.Fatal(err)
	}
}

func show(ctx context.Context, ids *client.IDs[flake.ID]) error {
	id, err := ids.Next(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("one:      %v, made at %v by %v\n", id, id.Time().Format(time.RFC3339Nano), id.Worker())

	many := make([]flake.ID, 1000)
	if _, err := ids.NextN(ctx, many); err != nil {
		return err
	}
	fmt.Printf("many:     %d, from %v to %v\n", len(many), many[0], many[len(many)-1])

	midnight := id.Time().Truncate(24 * time.Hour)
	lowest, highest, err := ids.Span(ctx, midnight, id.Time())
	if err != nil {
		return err
	}
	fmt.Printf("today's:  where id between '%v' and '%v'\n", lowest.UUID(), highest.UUID())

	leased, err := ids.Leased(client.LeaseOptions{Size: 10_000})
	if err != nil {
		return err
	}
	defer leased.Close()
	const workers, each = 8, 100_000
	var all sync.WaitGroup
	start := time.Now()
	for range workers {
		all.Go(func() {
			for range each {
				if _, err := leased.Next(ctx); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	all.Wait()
	fmt.Printf("leased:   %d, %d ns each\n", workers*each, time.Since(start).Nanoseconds()/(workers*each))
	return nil
}
