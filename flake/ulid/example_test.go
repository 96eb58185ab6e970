package ulid_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/ulid"
)

func Example() {
	worker, err := flake.ParseWorker("02:00:00:00:00:01")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := ulid.Open(context.Background(), "/var/lib/orders/timestamp", worker, ulid.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	id, err := ids.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id)
}

func ExampleParse() {
	id, err := ulid.Parse("01HF7YAT0000N0400000002J8Y")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id.Time().Format(time.RFC3339), id.Worker(), id.Sequence())
	// Output:
	// 2023-11-14T22:13:20Z 02:00:00:00:00:01 42
}

func ExampleSpan() {
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	low, high := ulid.Span(day, day.AddDate(0, 0, 1).Add(-time.Millisecond))
	fmt.Println("WHERE id BETWEEN", low, "AND", high)
	// Output:
	// WHERE id BETWEEN 01KG8NJW000000000000000000 AND 01KGB7ZJZZZZZZZZZZZZZZZZZZ
}
