package idhttp

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
)

//go:embed page openapi.yaml
var files embed.FS

var templates = template.Must(template.ParseFS(files, "page/*.html"))

// policy lets the page load resources from this server, and from nowhere else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// page shows the state of the node, and decodes an id: /?id=&base=&generator=.
func (d *Door) page(w http.ResponseWriter, r *http.Request, p parameters) *problem {
	now := time.Now()
	inspected := d.inspect(p, now)
	setHTML(w.Header(), policy)
	if inspected.Fault != "" {
		w.WriteHeader(http.StatusBadRequest)
	}
	templates.ExecuteTemplate(w, "page.html", struct {
		State   *state
		Inspect *inspection
	}{d.state(now), inspected})
	return nil
}

func setHTML(h http.Header, policy string) {
	h.Set("Content-Type", html)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // see crossSite
	h["Cache-Control"] = noStore
}

// unauthorized explains which password the browser asks for. Its style is inline, since
// the page's files also require the token.
func unauthorized(w http.ResponseWriter) {
	setHTML(w.Header(), strings.Replace(policy, "style-src 'self'", "style-src 'unsafe-inline'", 1))
	w.WriteHeader(http.StatusUnauthorized)
	templates.ExecuteTemplate(w, "unauthorized.html", nil)
}

// take takes an id and shows it on the page.
func (d *Door) take(w http.ResponseWriter, r *http.Request, p parameters) *problem {
	asked, fault := d.asked(p)
	if fault != nil {
		return fault
	}
	g := &asked[0]
	id, err := g.Server.Get(r.Context(), idserver.Meta{})
	if err != nil {
		return refused(g, err)
	}
	query := url.Values{"id": {string(g.format().Append(nil, id, formats.Canonical))}}
	if _, given := p["generator"]; given {
		query.Set("generator", g.Name)
	}
	http.Redirect(w, r, "/?"+query.Encode()+"#inspector", http.StatusSeeOther)
	return nil
}

// file serves a file of the page, or openapi.yaml.
func (*Door) file(w http.ResponseWriter, r *http.Request, _ parameters) *problem {
	name := "openapi.yaml"
	if ofPage := r.PathValue("name"); ofPage != "" {
		name = "page/" + ofPage
	}
	content, err := files.ReadFile(name)
	media := map[string]string{
		".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".yaml": "application/yaml",
	}[path.Ext(name)]
	if err != nil || media == "" {
		return missing(r)
	}
	sum := sha256.Sum256(content)
	h := w.Header()
	h.Set("Content-Type", media+"; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", fmt.Sprintf(`"%x"`, sum[:8]))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	return nil
}

// events sends the state of the node every second, as HTML in server-sent events.
func (d *Door) events(w http.ResponseWriter, r *http.Request, _ parameters) *problem {
	if crossSite(r) {
		return failed(http.StatusForbidden, "pages of other sites cannot follow events")
	}
	select {
	case d.streams <- struct{}{}:
		defer func() { <-d.streams }()
	default:
		return busy(idleTime, "%d pages already follow events, which is the limit", MaxStreams)
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h["Cache-Control"] = noStore
	h.Set("X-Accel-Buffering", "no") // nginx would keep the end of each event until the next
	c := http.NewResponseController(w)
	for {
		awaited := d.samples.awaited() // before admit: a change of access in between would be seen one event late
		if d.admit(&endpoint{}, r) != nil {
			return nil
		}
		c.SetWriteDeadline(time.Now().Add(writeTime))
		d.writeEvent(w, c) // if the caller does not read, the request's context ends
		select {
		case <-awaited:
		case <-r.Context().Done():
			return nil
		case <-d.ctx.Done():
			return nil
		}
	}
}

func (d *Door) writeEvent(w http.ResponseWriter, c *http.ResponseController) {
	var html bytes.Buffer
	templates.ExecuteTemplate(&html, "live", d.state(time.Now()))
	for line := range bytes.Lines(html.Bytes()) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			fmt.Fprintf(w, "data: %s\n", line)
		}
	}
	fmt.Fprintln(w)
	c.Flush()
}
