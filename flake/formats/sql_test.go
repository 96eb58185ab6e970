//go:build unix

package formats

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/workers/postgres/postgrestest"
)

// On a real PostgreSQL, the functions of rel/files/ids.sql read ids as the formats do. Each format
// has the functions NAME_time and NAME_worker. It also has NAME_text, unless its text is id::text. They
// return NULL for a value that is not an id of the layout.
func TestSQL(t *testing.T) {
	crockford, _ := BaseOf("crockford")
	random := rand.New(rand.NewPCG(1, 2))
	query, want := strings.Builder{}, strings.Builder{}
	// By size: the SQL for a value, given its hexadecimal digits, and the SQL for its bytes.
	columns := map[int]struct{ value, octets string }{
		8: {"x'%x'::bigint", "int8send(id)"}, 10: {`'\x%x'::bytea`, "id"}, 16: {"'%x'::uuid", "uuid_send(id)"},
	}
	for _, k := range Kinds {
		f := k.Format(nil)
		first := f.epoch
		last := first + 1<<38 // 8 years later, when no 64-bit id is negative yet
		if f.Size == 16 {
			last = 1<<48 - 1 // the year 10889
		}
		low, high, err := f.Span(first, last)
		if err != nil {
			t.Fatal(err)
		}
		name, column := strings.ReplaceAll(k.Name, "-", "_"), columns[f.Size]
		time, worker, text := name+"_time(id)", name+"_worker(id)", name+"_text(id)"
		if k == idgens {
			time, worker = "snowflake_time(id, 0)", "snowflake_worker(id)"
		}
		switch string(f.Append(nil, low, Canonical)) {
		case string(low.appendDigits(nil, 10)), low.flake().UUID():
			text = "id::text"
		}
		for i := range 50 {
			id := []Number{low, high, low.Plus(1), {low.Hi, high.Lo}}[i%4]
			if i >= 4 {
				at, _ := f.at(first + random.Uint64N(last-first))
				id = at.add(f.lowest)
				for _, field := range f.fields[1:] {
					if field.Value == 0 {
						id = id.add(Number{Lo: random.Uint64N(1 << field.Width)}.shifted(f.shift(&field)))
					}
				}
			}
			fmt.Fprintf(&query, "SELECT trim_scale(extract(epoch FROM %s) * 1000), %s, %s, ids_crockford(%s) ",
				time, worker, text, column.octets)
			fmt.Fprintf(&query, "FROM (SELECT "+column.value+") AS t(id);\n", id.AppendOctets(nil, f.Size))
			fields, who := f.Fields(id), uint64(0)
			for _, field := range Who(fields) {
				who = who<<field.Width | field.Value
			}
			shown := strconv.FormatUint(who, 10)
			if k.Random() {
				shown = flake.Worker(who).String()
			}
			fmt.Fprintf(&want, "%d|%s|%s|%s\n", fields[0].Value, shown,
				f.Append(nil, id, Canonical), f.Append(nil, id, crockford))
		}
	}
	for _, v := range readVectors(t) {
		call := ""
		if number, err := strconv.ParseUint(v.text, 10, 64); err == nil && v.base == "canonical" && len(v.text) <= 20 {
			l := v.layout
			machine := l.Datacenter + l.Worker
			call = fmt.Sprintf("snowflake_time(id, %d, %d, %d) AS at, snowflake_worker(id, %d, %d, %d) AS worker "+
				"FROM (SELECT x'%016x'::bigint) AS t(id)", l.Epoch, machine+l.Sequence, l.Time, machine, l.Sequence, l.Time, number)
		} else if v.format == uuidv7Format && v.base == "canonical" && len(v.text) == len(flake.ID{}.UUID()) {
			call = fmt.Sprintf("uuidv7_time(id) AS at, uuidv7_worker(id) AS worker FROM (SELECT '%s'::uuid) AS t(id)", v.text)
		} else {
			continue
		}
		fmt.Fprintf(&query, "SELECT (extract(epoch FROM at) * 1000)::bigint, worker IS NULL FROM (SELECT %s) AS t;\n", call)
		fmt.Fprintf(&want, "%s|%s\n", strings.Trim(v.time, "-"), map[bool]string{true: "t", false: "f"}[v.hex == "-"])
	}
	// In a column that also contains others' values, those that are not ids fail no query.
	for _, call := range []string{
		"flake_time('f47ac10b-58cc-4372-a567-0e02b2c3d479')", "flake_time('ffffffff-ffff-ffff-ffff-ffffffffffff')",
		`sno_time('\x')`, `sno_worker('\x3e0b4f88b2030007')`, `sno_time('\x0000018bcfe568000200000000010007')`,
	} {
		fmt.Fprintf(&query, "SELECT %s IS NULL;\n", call)
		want.WriteString("t\n")
	}
	query.WriteString("SET search_path = ''; CREATE INDEX ON public.orders (public.snowflake_time(id));\n") // like pg_dump
	psql := postgrestest.Start(t).Psql()
	// Twice, as in an upgrade, of the first version too, whose functions an index and a view use.
	psql.Args = append(psql.Args, "-c", "SET client_min_messages = warning", "-c", `
		CREATE FUNCTION snowflake_time(id bigint, epoch bigint DEFAULT 0, low_bits int DEFAULT 22) RETURNS timestamptz
			IMMUTABLE RETURN to_timestamp(0);
		CREATE FUNCTION snowflake_worker(id bigint, machine_bits int DEFAULT 10, sequence_bits int DEFAULT 12)
			RETURNS bigint IMMUTABLE RETURN 0;
		CREATE TABLE orders (id bigint);
		CREATE INDEX ON orders (snowflake_time(id));
		CREATE VIEW makers AS SELECT snowflake_worker(id) FROM orders`,
		"-f", "../../rel/files/ids.sql", "-f", "../../rel/files/ids.sql", "-f", "-")
	psql.Stdin = strings.NewReader(query.String())
	out, err := psql.CombinedOutput()
	got, wants := strings.Split(string(out), "\n"), strings.Split(want.String(), "\n")
	for i := range min(len(got), len(wants)) {
		if got[i] != wants[i] {
			t.Errorf("%s, want %s", got[i], wants[i])
		}
	}
	if err != nil || len(got) != len(wants) {
		t.Errorf("%d lines, want %d: %v", len(got), len(wants), err)
	}
}
