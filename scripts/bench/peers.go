package main

import (
	"context"
	"log"
	"math/big"
	"slices"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/muyo/sno"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"

	"github.com/flake-go/flake/flake"
)

func single(p plan) []row {
	g := newFlake()
	s, err := sno.NewGenerator(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	node, err := snowflake.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	return race(p, "one id, one thread", 45,
		rival{"Next", each(func() flake.ID { id, _ := g.Next(context.Background()); return id })},
		rival{"rs/xid", each(xid.New)},
		rival{"muyo/sno (at its ceiling)", each(func() sno.ID { return s.New(0) })},
		rival{"google/uuid v7", each(func() uuid.UUID { id, _ := uuid.NewV7(); return id })},
		rival{"oklog/ulid", each(ulid.Make)},
		rival{"bwmarrin (at its ceiling)", each(node.Generate)},
	)
}

func text(p plan) []row {
	id, err := newFlake().Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	short, _ := id.Text(62)
	full := id.String()
	number := new(big.Int).SetBytes(id[:])
	digits, buf := number.Text(62), make([]byte, 0, 32)
	return slices.Concat(
		race(p, "base 62", 16,
			rival{"AppendBase", each(func() []byte { b, _ := id.AppendBase(buf, 62); return b })},
			rival{"flake AppendText", each(func() []byte { b, _ := id.AppendText(buf); return b })},
			rival{"flake String", each(id.String)},
			rival{"math/big Append", each(func() []byte { return new(big.Int).SetBytes(id[:]).Append(buf, 62) })},
		),
		race(p, "base 62", 25,
			rival{"ParseBase", each(func() flake.ID { id, _ := flake.ParseBase(short, 62); return id })},
			rival{"flake ParseBase, padded", each(func() flake.ID { id, _ := flake.ParseBase(full, 62); return id })},
			rival{"math/big SetString", each(func() *big.Int { n, _ := new(big.Int).SetString(digits, 62); return n })},
		),
	)
}
