package formats

import (
	"context"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// The kinds whose formats have 128-bit ids and 48-bit workers.
var (
	flakes  = workerKind(flakeFormat, flake.NewGenerator, flake.Open, Flake)
	uuidv7s = workerKind(uuidv7Format, uuidv7.NewGenerator, uuidv7.Open, UUIDv7)
	ulids   = workerKind(ulidFormat, ulid.NewGenerator, ulid.Open, ULID)
)

var keyWorkerID = &Key{Name: "worker_id", Type: MAC, Does: "the worker, a `MAC` such as 02:00:00:00:00:01, or random"}

func workerKind[G any](f *Format, newGenerator func(flake.Worker, flake.Options) (G, error),
	openFile func(context.Context, string, flake.Worker, flake.Options) (G, error), adapt func(G) Generator) *Kind {
	return &Kind{
		Name: f.Name, Keys: []*Key{keyWorkerID}, Numbers: [][]string{{keyWorkerID.Name}},
		Format: func(Options) *Format { return f },
		Plan: func(o Options) (Plan, error) {
			w := flake.Worker(o[keyWorkerID.Name])
			ids := Range{keyWorkerID.Name, w.String(), f.Name, uint64(w), uint64(w)}
			open := func(ctx context.Context, path string, o flake.Options) (Generator, error) {
				if path == "" && o.Marks == nil {
					return opened(adapt)(newGenerator(w, o))
				}
				return opened(adapt)(openFile(ctx, path, w, o))
			}
			return Plan{w.String(), uint64(w), ids, open}, nil
		},
	}
}

var flakeFormat = Format{
	Name: "flake", Size: 16, unit: 1,
	fields: []Field{{"time", 0, 0, 64}, {"worker", 0, 0, 48}, {"sequence", 0, 0, 16}},
	append: func(dst []byte, id Number) ([]byte, error) { return id.flake().AppendText(dst) },
	parse: func(text string) (Number, error) {
		var id flake.ID
		err := id.Scan(text) // also accepts the form of a UUID
		return of128(id), err
	},
}.made()

var uuidv7Format = Format{
	Name: "uuidv7", Size: 16, unit: 1,
	fields: []Field{
		{"time", 0, 0, 48}, {"version", 7, 0, 4}, {"sequence", 0, 0, 12},
		{"variant", 2, 0, 2}, {"worker", 0, 0, 48}, {"random", 0, 0, 14},
	},
	append: func(dst []byte, id Number) ([]byte, error) { return uuidv7.ID(id.flake()).AppendText(dst) },
	parse:  func(text string) (Number, error) { return ofText128(uuidv7.Parse(text)) },
}.made()

var ulidFormat = Format{
	Name: "ulid", Size: 16, unit: 1,
	fields: []Field{{"time", 0, 0, 48}, {"sequence", 0, 0, 16}, {"worker", 0, 0, 48}, {"random", 0, 0, 16}},
	append: func(dst []byte, id Number) ([]byte, error) { return ulid.ID(id.flake()).AppendText(dst) },
	parse: func(text string) (Number, error) {
		var id ulid.ID
		err := id.Scan(text) // also accepts the form of a UUID
		return of128(id), err
	},
}.made()

// Flake adapts a generator of package flake.
func Flake(ids *flake.Generator) Generator {
	return &generator[flake.ID, uint16]{ids, flakeFormat, uint64(ids.Worker()), of128[flake.ID]}
}

// UUIDv7 adapts a generator of package uuidv7.
func UUIDv7(ids *uuidv7.Generator) Generator {
	return &generator[uuidv7.ID, uint16]{ids, uuidv7Format, uint64(ids.Worker()), of128[uuidv7.ID]}
}

// ULID adapts a generator of package ulid.
func ULID(ids *ulid.Generator) Generator {
	return &generator[ulid.ID, uint16]{ids, ulidFormat, uint64(ids.Worker()), of128[ulid.ID]}
}
