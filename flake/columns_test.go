package flake_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// Scan reads what drivers return for the columns in docs/databases.md. Where a column cannot hold the
// id, it fails. The drivers are pgx 5 (stdlib) and lib/pq 1.12, go-sql-driver/mysql 1.10, and mattn's
// and modernc's for SQLite.
func TestColumns(t *testing.T) {
	id128 := flake.MustParse("000001a1-fb17-5a01-7a00-78ffe3d40000")
	v7 := uuidv7.MustParse("019b76da-a800-7001-8080-00000001e345")
	of80 := sno.MustParse("9q6uqblq2622g22b")
	u := ulid.ID(v7)
	const low, high = snowflake.ID(911936766637928448), snowflake.ID(9265170216935424000) // around 2^63
	for _, tt := range []struct {
		column  string
		value   any
		scanned sql.Scanner
		want    any // nil if Scan fails
	}{
		{"uuid: pgx", id128.UUID(), new(flake.ID), id128},
		{"uuid: lib/pq", []byte(id128.UUID()), new(flake.ID), id128},
		{"uuid: pgx's own type", [16]byte(id128), new(flake.ID), id128},
		{"bytea, binary(16), BLOB: all", id128[:], new(flake.ID), id128},
		{"text: pgx, lib/pq, SQLite", id128.String(), new(flake.ID), id128},
		{"varchar: MySQL", []byte(id128.String()), new(flake.ID), id128},
		{"TEXT: SQLite, in a column of type uuid", 1.0e+234, new(flake.ID), nil},
		{"bigint: a number", int64(1), new(flake.ID), nil},
		{"text: empty", "", new(flake.ID), nil},
		{"text: 16 bytes, which are an id only in a column of bytes", "warehouse worker", new(flake.ID), nil},

		{"uuid: pgx", v7.String(), new(uuidv7.ID), v7},
		{"uuid: lib/pq, MariaDB", []byte(v7.String()), new(uuidv7.ID), v7},
		{"uuid: pgx's own type", [16]byte(v7), new(uuidv7.ID), v7},
		{"bytea, binary(16), BLOB: all", v7[:], new(uuidv7.ID), v7},
		{"bytea: a flake id", id128[:], new(uuidv7.ID), nil},

		{"uuid: pgx", u.UUID(), new(ulid.ID), u},
		{"uuid: lib/pq", []byte(u.UUID()), new(ulid.ID), u},
		{"uuid: pgx's own type", [16]byte(u), new(ulid.ID), u},
		{"bytea, binary(16), BLOB: all", u[:], new(ulid.ID), u},
		{"text: pgx, lib/pq, SQLite", u.String(), new(ulid.ID), u},
		{"char(26): MySQL", []byte(u.String()), new(ulid.ID), u},
		{"char(26): letters that are not digits", []byte("0ABCDEFGHIJKLMNOPQRSTUVWXY"), new(ulid.ID), nil},
		{"char(26): empty", []byte{}, new(ulid.ID), nil},

		{"bigint, INTEGER: all", int64(low), new(snowflake.ID), low},
		{"bigint unsigned: MySQL, without arguments", uint64(low), new(snowflake.ID), low},
		{"bigint unsigned: MySQL, without arguments", uint64(high), new(snowflake.ID), high},
		{"bigint unsigned: MySQL, with arguments", []byte(high.String()), new(snowflake.ID), high},
		{"numeric(20): pgx", high.String(), new(snowflake.ID), high},
		{"numeric(20): lib/pq", []byte(high.String()), new(snowflake.ID), high},
		{"bigint: an id from 2^63 on", int64(-1), new(snowflake.ID), nil},
		{"INTEGER: SQLite, an id from 2^63 on", float64(high), new(snowflake.ID), nil},
		{"BLOB: SQLite", []byte("\x80\x94\x7f\x39\x2b\xf7\x00\x00"), new(snowflake.ID), nil}, // use FromBytes

		{"bytea, binary(10), BLOB: all", of80[:], new(sno.ID), of80},
		{"text: pgx, lib/pq, SQLite", of80.String(), new(sno.ID), of80},
		{"bytea: another id", id128[:], new(sno.ID), nil},
		{"bigint: a number", uint64(1), new(sno.ID), nil},
	} {
		err := tt.scanned.Scan(tt.value)
		got := fmt.Sprint(tt.scanned)
		if (err == nil) != (tt.want != nil) || err == nil && got != fmt.Sprint(tt.want) {
			t.Errorf("%T from %s, %T: %s, %v, want %v", tt.scanned, tt.column, tt.value, got, err, tt.want)
		}
	}
}
