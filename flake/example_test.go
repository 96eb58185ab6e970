package flake_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/flake-go/flake/flake"
)

func Example() {
	worker, _, err := flake.InterfaceWorker("")
	if err != nil {
		worker = flake.RandomWorker()
	}
	ids, err := flake.Open(context.Background(), "/var/lib/flake/timestamp", worker, flake.Options{})
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

func ExampleNew() {
	first, second := flake.New(), flake.New()
	fmt.Println(len(first.String()), first.Compare(second))
	// Output: 22 -1
}

// Two generators share one file, which is written once a second for both.
func ExampleOpenMarks() {
	marks, err := flake.OpenMarks("/var/lib/flake/timestamp", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer marks.Close()
	for i, name := range []string{"orders", "items"} {
		ids, err := flake.Open(context.Background(), name, flake.Worker(i+1), flake.Options{Marks: marks})
		if err != nil {
			log.Fatal(err)
		}
		defer ids.Close()
	}
}

func ExampleParse() {
	for _, text := range []string{
		"0000AboKHPfE7cAx9OrCYZ",
		"0000018b-cfe5-6800-0200-000000010007",
		"0x0000018bcfe568000200000000010007",
	} {
		id, err := flake.Parse(text)
		fmt.Println(id, err)
	}
	// Output:
	// 0000AboKHPfE7cAx9OrCYZ <nil>
	// 0000AboKHPfE7cAx9OrCYZ <nil>
	// 0000AboKHPfE7cAx9OrCYZ <nil>
}

func ExampleID() {
	id := flake.Make(1_700_000_000_000, 0x020000000001, 7)
	short, _ := id.Text(62)
	padded, _ := id.Padded(36)
	fmt.Println(id.Time().Format(time.RFC3339), id.Worker(), id.Sequence())
	fmt.Println(id)
	fmt.Println(short)
	fmt.Println(padded)
	fmt.Println(id.UUID())
	// Output:
	// 2023-11-14T22:13:20Z 02:00:00:00:00:01 7
	// 0000AboKHPfE7cAx9OrCYZ
	// AboKHPfE7cAx9OrCYZ
	// 00002CGCM1DSEIKFM2BCXLLAF
	// 0000018b-cfe5-6800-0200-000000010007
}

func ExampleSpan() {
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	low, high := flake.Span(day, day.AddDate(0, 0, 1).Add(-time.Millisecond))
	fmt.Println("WHERE id BETWEEN", low.UUID(), "AND", high.UUID())
	// Output:
	// WHERE id BETWEEN 0000019c-1159-7000-0000-000000000000 AND 0000019c-167f-cbff-ffff-ffffffffffff
}
