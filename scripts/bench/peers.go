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

// What is made goes here, so that it is made.
var (
	sinkFlake flake.ID
	sinkXID   xid.ID
	sinkSno   sno.ID
	sinkUUID  uuid.UUID
	sinkULID  ulid.ULID
	sinkTwit  snowflake.ID
	sinkText  []byte
	sinkStr   string
	sinkBig   *big.Int
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
		each(func() { sinkFlake, _ = g.Next() }),
		each(func() { sinkXID = xid.New() }),
		each(func() { sinkSno = s.New(0) }),
		each(func() { sinkUUID, _ = uuid.NewV7() }),
		each(func() { sinkULID = ulid.Make() }),
		each(func() { sinkTwit = node.Generate() }),
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
	digits := number.Text(62)
	table("base 62, append", measure(rounds, []string{"flake AppendText", "flake AppendPadded", "flake String", "math/big Append"}, []func(*testing.B){
		each(func() { sinkText, _ = id.AppendText(sinkText[:0], 62) }),
		each(func() { sinkText, _ = id.AppendPadded(sinkText[:0], 62) }),
		each(func() { sinkStr = id.String() }),
		each(func() { sinkText = new(big.Int).SetBytes(id[:]).Append(sinkText[:0], 62) }),
	}))
	table("base 62, parse", measure(rounds, []string{"flake Parse, 18 digits", "flake Parse, 22 digits", "math/big SetString"}, []func(*testing.B){
		each(func() { sinkFlake, _ = flake.Parse(short, 62) }),
		each(func() { sinkFlake, _ = flake.Parse(full, 62) }),
		each(func() { sinkBig, _ = new(big.Int).SetString(digits, 62) }),
	}))
}
