package etcd

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/flake-go/flake/flake/workers"
)

var errRestored = errors.New("etcd was restored from a snapshot")

// history holds what the answers since the last restore showed.
type history struct {
	restores       int
	cluster        uint64          // from the first answer; 0 before it
	used           map[string]bool // endpoints that have answered from the cluster
	revision, term uint64          // the highest so far
	low            bool            // whether the answer to the last write had a lower term
	sign           string          // the sign of a restore, or empty
}

// Restored returns a sign that etcd was restored from a snapshot, if there is one: the
// revision or raft term of the cluster is lower than before, or an endpoint has moved to
// another cluster. After a sign, all calls fail until Restored has returned the sign. Restored
// returns each sign once, so use a Store for only one [workers.Owner].
//
// A restored etcd shows no sign if it has the same cluster id, a revision that is not lower
// (it was written to, or restored with --bump-revision), and at least as many elections.
func (s *Store) Restored() (sign string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.history
	if h.sign != "" {
		s.history = history{restores: h.restores + 1}
	}
	return h.sign, h.sign != ""
}

// before returns the history with which to compare the answer to a new request. That history must
// not contain answers that arrive during the request, since the order of answers is unknown.
func (s *Store) before() (history, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history, s.history.err()
}

func (h *history) err() error {
	if h.sign == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", errRestored, h.sign)
}

// note adds an answer to the history. If the answer must not be used, note returns an error.
func (s *Store) note(before history, endpoint string, kind kind, got reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, now := &s.history, got.Header
	switch {
	case h.restores != before.restores:
		return fmt.Errorf("%w during the request", errRestored)
	case h.sign != "":
		return h.err()
	case h.cluster == 0:
		h.cluster, h.used = now.Cluster, map[string]bool{}
	case h.cluster != now.Cluster && h.used[endpoint]:
		h.sign = fmt.Sprintf("%s was in cluster %s, but is now in %s", endpoint, hex(h.cluster), hex(now.Cluster))
		return h.err()
	case h.cluster != now.Cluster:
		return fmt.Errorf("%w: it belongs to cluster %s, and the others to %s: set the endpoints of one cluster",
			workers.ErrRefused, hex(now.Cluster), hex(h.cluster))
	}
	h.used[endpoint] = true
	if kind == local {
		return nil
	}
	// A member that received a snapshot from another member reports an old term until shortly
	// after it has applied an entry. By its second write it has applied one.
	low := kind == writes && now.Term < before.term
	switch {
	case now.Revision < before.revision:
		h.sign = fmt.Sprintf("the revision at %s is %d, but was %d", endpoint, now.Revision, before.revision)
	case low && before.low:
		h.sign = fmt.Sprintf("the raft term at %s is %d, but was %d", endpoint, now.Term, before.term)
	}
	if kind == writes {
		h.low = low
	}
	h.revision, h.term = max(h.revision, now.Revision), max(h.term, now.Term)
	return h.err()
}

// hex formats an id as etcdctl does.
func hex(id uint64) string { return strconv.FormatUint(id, 16) }
