package uuidv7_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/uuidv7"
)

func Example() {
	worker, err := flake.ParseWorker("02:00:00:00:00:01")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := uuidv7.Open(context.Background(), "/var/lib/orders/timestamp", worker, uuidv7.Options{})
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
	id, err := uuidv7.Parse("018bcfe5-6800-702a-8080-00000000491e")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id.Time().Format(time.RFC3339), id.Worker(), id.Sequence())
	// Output:
	// 2023-11-14T22:13:20Z 02:00:00:00:00:01 42
}

func ExampleSpan() {
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	low, high := uuidv7.Span(day, day.AddDate(0, 0, 1).Add(-time.Millisecond))
	fmt.Println("WHERE id BETWEEN", low, "AND", high)
	// Output:
	// WHERE id BETWEEN 019c1159-7000-7000-8000-000000000000 AND 019c167f-cbff-7fff-bfff-ffffffffffff
}
