package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/flake/workers/internal/httperr"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/internal/switching"
)

// A resource is a kind of object.
type resource struct{ path, group, name, kind string }

var (
	configMaps = resource{"/api/v1", "", "configmaps", "ConfigMap"}
	leases     = resource{"/apis/coordination.k8s.io/v1", "coordination.k8s.io", "leases", "Lease"}
)

// object has the fields of the objects that are read and written, and those of errors.
type object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   struct {
		Name    string            `json:"name,omitempty"`
		UID     string            `json:"uid,omitempty"`
		Version string            `json:"resourceVersion,omitempty"`
		Labels  map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Data map[string]string `json:"data,omitempty"` // of a ConfigMap
	Spec *spec             `json:"spec,omitempty"` // of a Lease

	// The fields of a Status.
	Reason  string  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`
	Details details `json:"details,omitzero"`

	date time.Time // when the answer was written, in whole seconds
}

type spec struct {
	Holder string `json:"holderIdentity"`
}

type details struct {
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`
}

// onlyMetadata asks for an answer without the object's data.
const onlyMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// statusError is an error of the API server.
type statusError struct {
	code   int
	status object
	text   string
	after  time.Duration // how long to wait before the request is sent again, or 0
}

func (e *statusError) Error() string { return e.text }
func (e *statusError) Unwrap() error {
	switch {
	case e.status.Kind == "": // not an answer of Kubernetes
	case strings.Contains(e.status.Message, "Too long"): // the object is full
	// A right may come later: an API server that has just started forbids all until it has read the roles.
	case e.code == http.StatusUnauthorized,
		e.code == http.StatusUnprocessableEntity && e.status.Details.Name != "",
		e.code == http.StatusNotFound && e.status.Details.Kind == "namespaces":
		return workers.ErrRefused
	}
	return nil
}

// is reports whether err is an error of the API server with a code and a reason.
func is(err error, code int, reason string) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.code == code && e.status.Reason == reason
}

// missing reports whether err says that there is no object with the name.
func (s *Store) missing(err error, r resource) bool {
	e, _ := errors.AsType[*statusError](err)
	return is(err, http.StatusNotFound, "NotFound") && e.status.Details == details{s.name, r.name}
}

// failedTest reports whether err is that of a JSON Patch that could not be applied. Unlike other
// errors with that code it has no details.
func failedTest(err error) bool {
	e, _ := errors.AsType[*statusError](err)
	return is(err, http.StatusUnprocessableEntity, "Invalid") && e.status.Details == details{}
}

// read returns the ConfigMap. If there is none, and there was none before, it returns a zero object.
func (s *Store) read(ctx context.Context) (object, error) {
	before, err := s.history.Before()
	if err != nil {
		return object{}, err
	}
	o, err := s.call(ctx, http.MethodGet, configMaps, s.name, nil)
	if s.missing(err, configMaps) {
		return object{}, s.noteMissing(before)
	}
	if err == nil {
		err = s.note(before, o)
	}
	return o, err
}

// write makes or patches the ConfigMap. After a patch it returns only the metadata.
func (s *Store) write(ctx context.Context, method string, body any) (object, error) {
	before, err := s.history.Before()
	if err != nil {
		return object{}, err
	}
	name := s.name
	if method == http.MethodPost {
		name = ""
	}
	o, err := s.call(ctx, method, configMaps, name, body)
	if err == nil {
		err = s.note(before, o)
	} else if s.missing(err, configMaps) {
		err = cmp.Or(s.noteMissing(before), err)
	}
	return o, err
}

// call sends a request, and sends it again while the API server certainly did not perform it.
func (s *Store) call(ctx context.Context, method string, r resource, name string, body any) (object, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for conflicts := 0; ; {
		o, err := s.send(ctx, method, r, name, body)
		e, ok := errors.AsType[*statusError](err)
		wait := time.Duration(0)
		switch {
		case !ok:
		case e.code == http.StatusTooManyRequests:
			wait = max(e.after, retry)
		case is(err, http.StatusConflict, "Conflict"):
			conflicts++
			wait = rand.N(retry/5*time.Duration(conflicts)) + 1
		}
		if until, _ := ctx.Deadline(); wait == 0 || time.Until(until) < wait || tick.Sleep(ctx, wait) != nil {
			if err != nil {
				err = fmt.Errorf("kubernetes at %s: %w", s.server, escape.Err(err))
			}
			return o, err
		}
	}
}

// retry is the least wait after "429 Too Many Requests".
const retry = time.Second

// send sends a request, with the current token. If the API server does not accept it, and the file has
// another one by now, it is sent again.
func (s *Store) send(ctx context.Context, method string, r resource, name string, body any) (o object, err error) {
	for sent := ""; ; {
		token := ""
		if s.tokenFile != "" {
			text, err := os.ReadFile(s.tokenFile)
			if err != nil {
				return object{}, mounted(err)
			}
			token = strings.TrimSpace(string(text))
		}
		if err != nil && token == sent {
			return o, err
		}
		sent = token
		o, err = s.once(ctx, method, r, name, token, body)
		if !is(err, http.StatusUnauthorized, "Unauthorized") {
			return o, err
		}
	}
}

// once sends a request once.
func (s *Store) once(
	ctx context.Context, method string, r resource, name, token string, body any,
) (o object, err error) {
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	text, _ := json.Marshal(body) // strings can always be encoded
	address := s.server + r.path + "/namespaces/" + url.PathEscape(s.namespace) + "/" + r.name
	if name != "" {
		address += "/" + url.PathEscape(name)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return o, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Cache-Control", "no-cache")
	request.Header.Set("User-Agent", "flake")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if method != http.MethodGet {
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		request.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/json-patch+json")
		request.Header.Set("Accept", onlyMetadata)
	}
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return o, httperr.Explain(err, connected)
	}
	if err := switching.Refuse(response); err != nil {
		return o, err
	}
	defer response.Body.Close()
	date, _ := http.ParseTime(response.Header.Get("Date"))
	o.date = date
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return o, httperr.Explain(fmt.Errorf("its answer is cut off: %w", err), true)
	case len(answer) > maxAnswer:
		return o, fmt.Errorf("its answer is too long: more than %d bytes", maxAnswer)
	}
	err = json.Unmarshal(answer, &o)
	switch {
	case err != nil:
	case response.StatusCode < 300 && (o.Kind == r.kind || o.Kind == "PartialObjectMetadata") &&
		o.Metadata.Name == s.name && o.Metadata.UID != "":
		return o, nil
	case response.StatusCode >= 300 && o.Kind == "Status":
		return o, s.refusal(response, r, method, o)
	}
	shown := answer[:min(len(answer), maxShown)]
	return object{date: date}, &statusError{code: response.StatusCode, after: after(response),
		text: fmt.Sprintf("an answer that is not that of Kubernetes: %s: %q", response.Status, shown)}
}

// after returns how long the API server asks its clients to wait.
func after(response *http.Response) time.Duration {
	seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16)
	return time.Duration(seconds) * time.Second
}

// refusal returns an error with what the API server says, and with the remedy.
func (s *Store) refusal(response *http.Response, r resource, method string, status object) error {
	e := &statusError{code: response.StatusCode, status: status, after: after(response)}
	e.text = fmt.Sprintf("%s: %.*s", response.Status, maxShown, status.Message)
	switch {
	case e.code == http.StatusForbidden && strings.Contains(status.Message, " cannot "): // RBAC says so; a quota does not
		verb := map[string]string{http.MethodGet: "get", http.MethodPatch: "patch", http.MethodPost: "create"}[method]
		names := ""
		if method != http.MethodPost {
			names = fmt.Sprintf(", resourceNames [%s]", s.name)
		}
		e.text += fmt.Sprintf("; the pod's role in namespace %s needs the rule: apiGroups [%q], resources [%s]%s, verbs [%s]",
			s.namespace, r.group, r.name, names, verb)
	case e.code == http.StatusUnauthorized:
		e.text += fmt.Sprintf("; the token in %s is not valid: it has expired, or its service account or pod is gone",
			s.tokenFile)
	}
	return e
}
