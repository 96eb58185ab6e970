package stores

import (
	"crypto/tls"
	"errors"
	"regexp"
	"strings"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/kubernetes"
)

var objectName = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)

var kubernetesKind = &Kind{
	Name: "kubernetes",
	Keys: []Key{
		{Name: "kubernetes.namespace", Must: "must be the name of a namespace",
			Valid: func(s string) bool { return len(s) <= 63 && !strings.Contains(s, ".") && objectName.MatchString(s) }},
		{Name: "kubernetes.name", Must: "must be the name of a ConfigMap",
			Valid: func(s string) bool { return len(s) <= 253 && objectName.MatchString(s) }},
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
