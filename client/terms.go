package client

import (
	"bytes"
	"context"
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// The calls of a generator, and its answers.
var _ Door = (*Node)(nil)

func (n *Node) get(ctx context.Context, generator string) (id []byte, err error) {
	err = n.ask(ctx, generator, etf.Atom("get"), func(r *etf.Reader) { id = r.Binary() })
	return id, err
}

func (n *Node) texts(ctx context.Context, generator string, count, base int) (texts []string, err error) {
	request := etf.Tuple{etf.Atom("get_many"), int64(count), int64(base)}
	if base == Canonical {
		request[2] = etf.Atom("canonical")
	}
	err = n.ask(ctx, generator, request, func(r *etf.Reader) {
		for range r.ListHeader() {
			texts = append(texts, string(r.StringExt()))
		}
		r.Nil()
	})
	return texts, err
}

func (n *Node) lease(ctx context.Context, generator string, count, _ int) (runs []run, err error) {
	err = n.ask(ctx, generator, etf.Tuple{etf.Atom("lease"), int64(count)}, func(r *etf.Reader) {
		for range r.ListHeader() {
			r.Tuple()
			runs = append(runs, run{r.Binary(), int(r.Int())})
		}
		r.Nil()
	})
	return runs, err
}

func (n *Node) notional(ctx context.Context, generator string, milli uint64) (id []byte, err error) {
	request := etf.Tuple{etf.Atom("notional"), int64(milli)}
	err = n.ask(ctx, generator, request, func(r *etf.Reader) { id = r.Binary() })
	return id, err
}

func (n *Node) span(ctx context.Context, generator string, first, last uint64) (lowest, highest []byte, err error) {
	request := etf.Tuple{etf.Atom("notional"), int64(first), int64(last)}
	err = n.ask(ctx, generator, request, func(r *etf.Reader) {
		r.Tuple()
		lowest, highest = r.Binary(), r.Binary()
	})
	return lowest, highest, err
}

func (n *Node) decompose(ctx context.Context, generator string, id []byte) (fields []Field, err error) {
	request := etf.Tuple{etf.Atom("decompose"), id}
	err = n.ask(ctx, generator, request, func(r *etf.Reader) {
		for range r.ListHeader() {
			r.Tuple()
			fields = append(fields, Field{string(r.Atom()), r.Uint64()})
		}
		r.Nil()
	})
	return fields, err
}

// ask calls a generator and lets read decode the term of {ok, Term}.
func (n *Node) ask(ctx context.Context, generator string, request etf.Term, read func(*etf.Reader)) error {
	answer, err := n.call(ctx, etf.Atom(generator), request)
	if err != nil {
		return err
	}
	if err := readAnswer(answer, read); err != nil {
		return fmt.Errorf("node %s: %s: %s: %w", n.name, generator, etf.Format(nil, request), err)
	}
	return nil
}

func readAnswer(answer []byte, read func(*etf.Reader)) error {
	r := etf.NewReader(answer)
	r.Tuple()
	switch word := r.Atom(); {
	case bytes.Equal(word, []byte("ok")):
		read(&r)
		if r.Finish() != nil {
			return unexpected(answer)
		}
		return nil
	case bytes.Equal(word, []byte("error")) && r.Peek().IsAtom():
		return refusal(string(r.Atom()))
	}
	return unexpected(answer)
}

func unexpected(answer []byte) error {
	const shown = 200
	text := etf.FormatRaw(nil, answer, shown)
	if string(text) == "ok" { // the answer to any unknown call
		return ErrUnknown
	}
	return fmt.Errorf("the node answered %s", text)
}
