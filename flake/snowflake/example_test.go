package snowflake_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/flake-go/flake/flake/snowflake"
)

func Example() {
	machine, err := snowflake.Idgen.Machine(9, 7) // datacenter and worker
	if err != nil {
		log.Fatal(err)
	}
	ids, err := snowflake.Idgen.Open(context.Background(), "/var/lib/orders/timestamp", machine, snowflake.Options{})
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

func ExampleLayout() {
	layout := snowflake.Twitter
	layout.Datacenter, layout.Worker = 3, 7
	layout.Epoch = uint64(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	id, err := layout.Make(1_700_000_000_000, 5<<7|9, 42)
	if err != nil {
		log.Fatal(err)
	}
	parts, err := layout.Decompose(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts.Time().Format(time.RFC3339), parts.Datacenter, parts.Worker, parts.Sequence)
	fmt.Println(id)
	fmt.Println(id.Hex())
	fmt.Println(id.Binary())
	fmt.Println(snowflake.Base58.Text(id))
	// Output:
	// 2023-11-14T22:13:20Z 5 9 42
	// 512389598415458346
	// 071c5fa00028902a
	// 0000 0111 0001 1100 0101 1111 1010 0000 0000 0000 0010 1000 1001 0000 0010 1010
	// 2bZ5aTEe5oo
}

func ExampleLayout_Span() {
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	low, high := snowflake.Twitter.Span(day, day.AddDate(0, 0, 1).Add(-time.Millisecond))
	fmt.Println("WHERE id BETWEEN", low, "AND", high)
	// Output:
	// WHERE id BETWEEN 2017387349406646272 AND 2017749737272246271
}
