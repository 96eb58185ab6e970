package stores

import (
	"crypto/tls"
	"errors"
	"regexp"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/kubernetes"
)

var kubernetesKind = &Kind{
	Name: "kubernetes",
	Keys: []Key{
		{Name: "kubernetes.namespace", Valid: regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString,
			Must: "must be the name of a namespace"},
		{Name: "kubernetes.name", Valid: regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`).MatchString,
			Must: "must be the name of a ConfigMap"},
	},
	Check: func(Values) []Fault { return nil },
	Open: func(now func() Values, peek bool) (workers.Store, error) {
		v := now()
		return kubernetes.New(kubernetes.Config{
			Namespace: v.Text("kubernetes.namespace"), Name: v.Text("kubernetes.name"), Peek: peek,
		})
	},
	Advise: func(err error, prefix string) string {
		if errors.As(err, new(*tls.CertificateVerificationError)) {
			return "is the API server's CA the one that is mounted in the pod?"
		}
		return "" // its errors say what to do
	},
}
