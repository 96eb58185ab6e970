package main

import (
	"context"
	"log"
	"slices"

	bwmarrin "github.com/bwmarrin/snowflake"

	"github.com/flake-go/flake/flake/snowflake"
)

// snowflakes measures package snowflake. One at a time is measured with 16 bits
// of sequence, as 12 are used up before any generator gets slow. Theirs reads text
// without looking whether it is too long.
func snowflakes(p plan) []row {
	node := newBwmarrin(16)
	g := newSnowflake(16)
	id, err := g.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	same, buf := bwmarrin.ID(id), make([]byte, 0, 16)
	text := snowflake.Base58.Text(id)
	data := []byte(text)
	return slices.Concat(
		race(p, "snowflake", 45,
			rival{"Next", each(func() snowflake.ID { id, _ := g.Next(context.Background()); return id })},
			rival{"bwmarrin Generate", each(node.Generate)},
		),
		race(p, "snowflake", 40,
			rival{"Base58", each(func() []byte { return snowflake.Base58.Append(buf, id) })},
			rival{"bwmarrin Base58", each(same.Base58)},
		),
		race(p, "snowflake", 16,
			rival{"Base58.Parse", each(func() snowflake.ID { id, _ := snowflake.Base58.Parse(text); return id })},
			rival{"bwmarrin ParseBase58", each(func() bwmarrin.ID { id, _ := bwmarrin.ParseBase58(data); return id })},
		),
		bulk[snowflake.ID](p, "snowflake, ", 4096, func() *snowflake.Generator { return newSnowflake(12) }),
	)
}

func newSnowflake(sequence uint8) *snowflake.Generator {
	l := snowflake.Twitter
	l.Worker, l.Sequence = 22-sequence, sequence
	g, err := l.NewGenerator(1, snowflake.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return g
}

func newBwmarrin(sequence uint8) *bwmarrin.Node {
	defer func(node, step uint8) { bwmarrin.NodeBits, bwmarrin.StepBits = node, step }(bwmarrin.NodeBits, bwmarrin.StepBits)
	bwmarrin.NodeBits, bwmarrin.StepBits = 22-sequence, sequence
	node, err := bwmarrin.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	return node
}
