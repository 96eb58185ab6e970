package main

import (
	"log"
	"math/big"
	"testing"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/muyo/sno"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"

	"github.com/flake-go/flake/flake"
)

func single(rounds int) {
	g := newFlake()
	s, err := sno.NewGenerator(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	node, err := snowflake.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	table("one id, one thread", measure(rounds, []string{
		"flake", "rs/xid", "muyo/sno (waits at its ceiling)", "google/uuid v7", "oklog/ulid", "bwmarrin/snowflake (ceiling)",
	}, []func(*testing.B){
		each(func() flake.ID { id, _ := g.Next(); return id }),
		each(xid.New),
		each(func() sno.ID { return s.New(0) }),
		each(func() uuid.UUID { id, _ := uuid.NewV7(); return id }),
		each(ulid.Make),
		each(node.Generate),
	}))
}

func text(rounds int) {
	id, err := newFlake().Next()
	if err != nil {
		log.Fatal(err)
	}
	short, _ := id.Text(62)
	full := id.String()
	number := new(big.Int).SetBytes(id[:])
	digits, buf := number.Text(62), make([]byte, 0, 32)
	table("base 62, append", measure(rounds, []string{"flake AppendText", "flake AppendPadded", "flake String", "math/big Append"}, []func(*testing.B){
		each(func() []byte { b, _ := id.AppendText(buf, 62); return b }),
		each(func() []byte { b, _ := id.AppendPadded(buf, 62); return b }),
		each(id.String),
		each(func() []byte { return new(big.Int).SetBytes(id[:]).Append(buf, 62) }),
	}))
	table("base 62, parse", measure(rounds, []string{"flake Parse, 18 digits", "flake Parse, 22 digits", "math/big SetString"}, []func(*testing.B){
		each(func() flake.ID { id, _ := flake.Parse(short, 62); return id }),
		each(func() flake.ID { id, _ := flake.Parse(full, 62); return id }),
		each(func() *big.Int { n, _ := new(big.Int).SetString(digits, 62); return n }),
	}))
}
