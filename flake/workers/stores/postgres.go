package stores

import (
	"crypto/tls"
	"errors"
	"net/url"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/postgres"
)

var postgresKind = &Kind{
	Name: "postgres",
	Keys: []Key{
		{Name: "postgres.url", Valid: printable, Secret: true,
			Must: `must be a URL, such as "postgres://flake@10.0.0.1/ids"`},
		{Name: "postgres.password_file", Valid: path, Must: mustBePath, Reloads: true},
		{Name: "postgres.table", Valid: printable, Must: `must be "SCHEMA.TABLE"`},
	},
	Check: func(v Values) (faults []Fault) {
		if u, err := url.Parse(v.Text("postgres.url")); err == nil && v.Text("postgres.password_file") != "" {
			if _, has := u.User.Password(); has {
				faults = append(faults, Fault{"postgres.password_file", "postgres.url has a password: set only one of the two"})
			}
		}
		return faults
	},
	Open: func(now func() Values, peek bool) (workers.Store, error) {
		v := now()
		c := postgres.Config{URL: v.Text("postgres.url"), Table: v.Text("postgres.table"), Peek: peek}
		if v.Text("postgres.password_file") != "" {
			c.Password = func() (string, error) { return secret(now(), "postgres.password_file") }
			if _, err := c.Password(); err != nil {
				return nil, err
			}
		}
		return postgres.New(c)
	},
	Advise: func(err error, _ string) string {
		switch {
		case errors.As(err, new(*tls.CertificateVerificationError)):
			return "is this PostgreSQL's certificate? See sslmode and sslrootcert in postgres.url"
		case errors.As(err, new(*postgres.EndpointError)):
			return "see postgres.url"
		}
		return ""
	},
}
