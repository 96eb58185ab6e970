package etcd

import (
	"fmt"
	"strconv"

	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/answers"
)

type (
	history = answers.History[facts]
	seen    = answers.Seen[facts]
)

// facts are what the answers since the last restore showed.
type facts struct {
	cluster        uint64          // from the first answer; 0 before it
	used           map[string]bool // endpoints that have answered from the cluster
	revision, term uint64          // the highest so far
	low            bool            // whether the answer to the last write had a lower term
}

// Restored returns a sign that etcd was restored from a snapshot, if there is one: the
// revision or raft term of the cluster is lower than before, or an endpoint has moved to
// another cluster. After a sign, all calls fail until Restored has returned the sign. Restored
// returns each sign once, so use a Store for only one [workers.Owner].
//
// A restored etcd shows no sign if it has the same cluster id, a revision that is not lower
// (it was written to, or restored with --bump-revision), and at least as many elections.
func (s *Store) Restored() (sign string, ok bool) { return s.history.Restored() }

// note adds an answer to the history. If the answer must not be used, note returns an error.
func (s *Store) note(before seen, endpoint string, kind kind, got reply) error {
	was, now := before.Facts, got.Header
	return s.history.Note(before, func(f *facts) (sign string, err error) {
		switch {
		case f.cluster == 0:
			f.cluster, f.used = now.Cluster, map[string]bool{}
		case f.cluster != now.Cluster && f.used[endpoint]:
			return fmt.Sprintf("%s was in cluster %s, but is now in %s", endpoint, hex(f.cluster), hex(now.Cluster)), nil
		case f.cluster != now.Cluster:
			return "", fmt.Errorf("%w: it belongs to cluster %s, and the others to %s: set the endpoints of one cluster",
				workers.ErrRefused, hex(now.Cluster), hex(f.cluster))
		}
		f.used[endpoint] = true
		if kind == local {
			return "", nil
		}
		// A member that received a snapshot from another member reports an old term until shortly
		// after it has applied an entry. By its second write it has applied one.
		low := kind == writes && now.Term < was.term
		switch {
		case now.Revision < was.revision:
			sign = fmt.Sprintf("the revision at %s is %d, but was %d", endpoint, now.Revision, was.revision)
		case low && was.low:
			sign = fmt.Sprintf("the raft term at %s is %d, but was %d", endpoint, now.Term, was.term)
		}
		if kind == writes {
			f.low = low
		}
		f.revision, f.term = max(f.revision, now.Revision), max(f.term, now.Term)
		return sign, nil
	})
}

// hex formats an id as etcdctl does.
func hex(id uint64) string { return strconv.FormatUint(id, 16) }
