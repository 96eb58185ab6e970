package main

import (
	"context"
	"log"
	"slices"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	peer "github.com/muyo/sno"

	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
)

// snowflakes measures package snowflake. Single ids have a sequence of 16 bits, because every
// generator is fast enough to use up 12 bits. The rival's parser does not check the text's length.
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
		bulk(p, "snowflake, ", time.Millisecond, 4096, bulkSizes,
			func() *snowflake.Generator { return newSnowflake(12) }),
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
	nodeBits, stepBits := bwmarrin.NodeBits, bwmarrin.StepBits
	defer func() { bwmarrin.NodeBits, bwmarrin.StepBits = nodeBits, stepBits }()
	bwmarrin.NodeBits, bwmarrin.StepBits = 22-sequence, sequence
	node, err := bwmarrin.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	return node
}

func newSno() *sno.Generator {
	g, err := sno.NewGenerator(nil, sno.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return g
}

func newPeer() *peer.Generator {
	g, err := peer.NewGenerator(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	return g
}

// snoIDs measures package sno and muyo/sno.
func snoIDs(p plan) (rows []row) {
	g, s := newSno(), newPeer()
	id, _ := g.Next(context.Background())
	theirs, text, buf := peer.ID(id), id.String(), make([]byte, 0, 16)
	rows = slices.Concat(
		race(p, "sno, below the ceiling", 61,
			rival{"Next", spare(func() sno.ID { id, _ := g.Next(context.Background()); return id })},
			rival{"muyo/sno", spare(func() peer.ID { return s.New(1) })},
		),
		race(p, "sno", 16,
			rival{"AppendText", each(func() []byte { b, _ := id.AppendText(buf); return b })},
			rival{"muyo/sno MarshalText", each(func() []byte { b, _ := theirs.MarshalText(); return b })},
		),
		race(p, "sno", 25,
			rival{"Parse", each(func() sno.ID { id, _ := sno.Parse(text); return id })},
			rival{"muyo/sno, unchecked", each(func() peer.ID { id, _ := peer.FromEncodedString(text); return id })},
		),
	)
	rows = append(rows, bulk(p, "sno, ", sno.Unit, 65536, []int{1024}, newSno)...)
	n := min(p.duplicates, 16_000_000)
	r := duplicates("sno, there twice", n, func() (key [16]byte) {
		id, err := g.Next(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		copy(key[:], id[:])
		return key
	})
	r.Than = "muyo/sno"
	r.Theirs = float64(twins(n, func() (key [16]byte) {
		id := s.New(0)
		copy(key[:], id[:])
		return key
	}))
	return append(rows, r)
}

// spare is like each, but for ids with ticks of 4 ms. It makes only some of a tick's ids, and does
// not count the wait for the next tick.
func spare[T any](f func() T) func(*testing.B) {
	const few = 30_000
	return func(b *testing.B) {
		b.ReportAllocs()
		var last T
		for left := b.N; left > 0; left -= few {
			b.StopTimer()
			awaitTick(sno.Unit)
			b.StartTimer()
			for range min(left, few) {
				last = f()
			}
		}
		_ = last
	}
}
