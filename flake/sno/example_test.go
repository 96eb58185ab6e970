package sno_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/flake-go/flake/flake/sno"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "flake")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ids, err := sno.Open(context.Background(), filepath.Join(dir, "timestamp"),
		&sno.Snapshot{Partition: sno.Partition{'A', 10}}, sno.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	id, err := ids.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	id = id.WithMeta('u')
	fmt.Println(len(id), len(id.String()), id.Meta() == 'u', id.Partition())
	// Output: 10 16 true [65 10]
}

func ExampleParse() {
	id, err := sno.Parse("9d5ve82329xxxxxx")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", id.Decompose())
	// Output: {Milli:1767225600000 TickTock:true Meta:1 Partition:[255 255] Sequence:65535}
}

func ExampleSpan() {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lowest, highest := sno.Span(day, day.AddDate(0, 0, 1).Add(-sno.Unit))
	fmt.Println("WHERE id BETWEEN", lowest, "AND", highest)
	// Output: WHERE id BETWEEN 9d5ve82222222222 AND 9d78kjhxxxxxxxxx
}
