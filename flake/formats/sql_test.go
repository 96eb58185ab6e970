//go:build unix

package formats

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/internal/testenv"
)

// On a real PostgreSQL, the functions of rel/files/ids.sql read ids as the formats do.
func TestSQL(t *testing.T) {
	testenv.Need(t, "psql")
	crockford, _ := BaseOf("crockford")
	random := rand.New(rand.NewPCG(1, 2))
	mac := func(worker uint64) string { return flake.Worker(worker).String() }
	decimal := func(worker uint64) string { return strconv.FormatUint(worker, 10) }
	query, want := strings.Builder{}, strings.Builder{}
	for _, tt := range []struct {
		format *Format
		column string // SQL for a value of the column's type, from hexadecimal digits
		shows  string // SQL for the time, worker and text, and for the bytes of ids_crockford
		worker func(uint64) string
	}{
		{flakeFormat, "'%s'::uuid", "flake_time(id), flake_worker(id), flake_text(id), uuid_send(id)", mac},
		{uuidv7Format, "'%s'::uuid", "uuidv7_time(id), uuidv7_worker(id), id::text, uuid_send(id)", mac},
		{ulidFormat, "'%s'::uuid", "ulid_time(id), ulid_worker(id), ulid_text(id), uuid_send(id)", mac},
		{SnowflakeFormat(snowflake.Twitter), "x'%s'::bigint", "snowflake_time(id), snowflake_worker(id), id::text, int8send(id)", decimal},
		{SnowflakeFormat(snowflake.Idgen), "x'%s'::bigint", "snowflake_time(id, 0), snowflake_worker(id), id::text, int8send(id)", decimal},
		{snoFormat, `'\x%s'::bytea`, "sno_time(id), sno_worker(id), sno_text(id), id", decimal},
	} {
		first := tt.format.epoch
		last := first + 1<<38 // 8 years later, when no 64-bit id is negative yet
		low, high, err := tt.format.Span(first, last)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			id := []Number{low, high, low.Plus(1), {low.Hi, high.Lo}}[i%4]
			if i >= 4 {
				at, _ := tt.format.at(first + random.Uint64N(last-first))
				id = at.add(tt.format.lowest)
				for _, f := range tt.format.fields[1:] {
					if f.Value == 0 {
						id = id.add(Number{Lo: random.Uint64N(1 << f.Width)}.shifted(tt.format.shift(&f)))
					}
				}
			}
			shows := strings.Split(tt.shows, ", ")
			column := fmt.Sprintf(tt.column, fmt.Sprintf("%x", id.AppendOctets(nil, tt.format.Size)))
			last := len(shows) - 1
			fmt.Fprintf(&query, "SELECT (extract(epoch FROM %s) * 1000)::bigint, %s, ids_crockford(%s) FROM (SELECT %s) AS t(id);\n",
				strings.Join(shows[:last-2], ", "), strings.Join(shows[last-2:last], ", "), shows[last], column)
			fields, who := tt.format.Fields(id), uint64(0)
			for _, f := range Who(fields) {
				who = who<<f.Width | f.Value
			}
			fmt.Fprintf(&want, "%d|%s|%s|%s\n", fields[0].Value, tt.worker(who),
				tt.format.Append(nil, id, Canonical), tt.format.Append(nil, id, crockford))
		}
	}
	psql := postgres(t)
	psql.Args = append(psql.Args, "-f", "../../rel/files/ids.sql", "-f", "-")
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

// postgres starts a server, and returns a psql command for it. Debian installs the server's
// programs outside PATH, and they refuse to run as root.
func postgres(t *testing.T) *exec.Cmd {
	program := func(name string) string {
		if all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(all) > 0 {
			return all[len(all)-1]
		}
		testenv.Need(t, name)
		return name
	}
	initdb, ctl := program("initdb"), program("pg_ctl")
	dir, err := os.MkdirTemp("", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	as := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			testenv.Missing(t, err)
		}
		uid, _ := strconv.Atoi(nobody.Uid)
		gid, _ := strconv.Atoi(nobody.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	run := func(program string, args ...string) {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.SysProcAttr = dir, as
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
	data := filepath.Join(dir, "data")
	run(initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--locale=C", "-E", "UTF8")
	run(ctl, "-D", data, "-w", "-l", filepath.Join(dir, "log"), "-o", "-F -k "+dir+" -c listen_addresses=", "start")
	t.Cleanup(func() { run(ctl, "-D", data, "-m", "immediate", "stop") })
	return exec.Command("psql", "-h", dir, "-U", "postgres", "-XqAt", "-v", "ON_ERROR_STOP=1", "postgres")
}
