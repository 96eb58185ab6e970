package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/flake-go/flake/flake/workers/internal/answers"
)

type (
	history = answers.History[facts]
	seen    = answers.Seen[facts]
)

// facts are what the answers since the last restore showed.
type facts struct {
	uid     string // of the ConfigMap; empty if unknown
	version string // the highest resourceVersion so far
}

// Restored returns a sign that the ConfigMap was deleted, or that Kubernetes was restored, if there
// is one: the ConfigMap is missing, or has another uid or a lower resourceVersion than before; or
// it has no keys, although the Lease says that another one had. After a sign, all calls fail until
// Restored has returned the sign. Restored returns each sign once, so use a Store for only one
// [workers.Owner].
//
// There is no sign if the ConfigMap was restored and then written, so that its resourceVersion is
// higher, or if a copy of its data was written to it, as by kubectl apply.
func (s *Store) Restored() (sign string, ok bool) { return s.history.Restored() }

// note adds an answer to the history. If the answer must not be used, note returns an error.
func (s *Store) note(before seen, o object) error {
	was, now := before.Facts, o.Metadata
	return s.history.Note(before, func(f *facts) (sign string, err error) {
		switch {
		case f.uid == "":
			f.uid = now.UID
		case f.uid != now.UID:
			sign = fmt.Sprintf("the ConfigMap %s was deleted and made again: its uid was %s, but is %s", s.name, f.uid, now.UID)
		case later(was.version, now.Version):
			sign = fmt.Sprintf("the resourceVersion of the ConfigMap %s is %s, but was %s", s.name, now.Version, was.version)
		}
		if later(now.Version, f.version) {
			f.version = now.Version
		}
		return sign, nil
	})
}

// noteMissing adds an answer that says that there is no ConfigMap.
func (s *Store) noteMissing(before seen) error {
	return s.history.Note(before, func(*facts) (sign string, err error) {
		if before.Facts.uid != "" {
			sign = fmt.Sprintf("the ConfigMap %s was deleted", s.name)
		}
		return sign, nil
	})
}

// later reports whether a is later than b. resourceVersions are decimal integers of up to 128 bits.
func later(a, b string) bool {
	return strings.Trim(a+b, "0123456789") == "" && cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) > 0
}

// known returns the uid of the ConfigMap, which it makes if there is none.
func (s *Store) known(ctx context.Context) (string, error) {
	if h, err := s.history.Before(); err != nil || h.Facts.uid != "" {
		return h.Facts.uid, err
	}
	return s.Cluster(ctx)
}

// Cluster returns the uid of the ConfigMap. It makes the ConfigMap and the Lease if they are
// missing, unless the store only peeks.
func (s *Store) Cluster(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	o, err := s.read(ctx)
	if err == nil && o.Metadata.UID == "" {
		if s.peek {
			return "", nil
		}
		if o, err = s.write(ctx, http.MethodPost, s.empty(configMaps)); is(err, http.StatusConflict, "AlreadyExists") {
			o, err = s.read(ctx) // another node made it
		}
	}
	if err == nil {
		err = s.witness(ctx, o)
	}
	if err != nil {
		return "", err
	}
	return o.Metadata.UID, nil
}

// empty returns a new object.
func (s *Store) empty(r resource) (o object) {
	o.APIVersion, o.Kind, o.Metadata.Name = strings.TrimPrefix(r.group+"/v1", "/"), r.kind, s.name
	o.Metadata.Labels = map[string]string{"app.kubernetes.io/name": "flake", "app.kubernetes.io/managed-by": "flake"}
	if r == configMaps {
		o.Data = map[string]string{note: "The numbers of the nodes of flake. Do not edit or delete this: ids would repeat."}
	}
	return o
}

// note is the key of a note for people. It is not the name of a key.
const note = "_note"

// witness compares the ConfigMap with the Lease, which it makes if it is missing.
func (s *Store) witness(ctx context.Context, o object) error {
	before, err := s.history.Before()
	if err != nil {
		return err
	}
	lease, err := s.call(ctx, http.MethodGet, leases, s.name, nil)
	if s.missing(err, leases) {
		if s.peek {
			return nil
		}
		mine := s.empty(leases)
		mine.Spec = &spec{o.Metadata.UID}
		lease, err = s.call(ctx, http.MethodPost, leases, "", mine)
		if is(err, http.StatusConflict, "AlreadyExists") {
			lease, err = s.call(ctx, http.MethodGet, leases, s.name, nil)
		}
	}
	if err != nil {
		return err
	}
	for name := range o.Data {
		if _, ok := decode(name); ok { // the numbers say where they were
			return nil
		}
	}
	if before.Restores > 0 || lease.Spec != nil && lease.Spec.Holder == o.Metadata.UID {
		return nil
	}
	return s.history.Note(before, func(*facts) (sign string, err error) {
		return fmt.Sprintf("the ConfigMap %s was deleted: the Lease %s names the uid of another", s.name, s.name), nil
	})
}
