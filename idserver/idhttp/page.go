package idhttp

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
)

//go:embed page openapi.yaml
var files embed.FS

var templates = template.Must(template.ParseFS(files, "page/*.html"))

// policy lets the page have what comes from here, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// page shows what the node is, and takes an id apart: /?id=&base=&generator=.
func (s *Server) page(w http.ResponseWriter, r *http.Request) *problem {
	now := time.Now()
	inspected, fault := s.inspect(r, now)
	if fault != nil {
		return fault
	}
	var page bytes.Buffer
	err := templates.ExecuteTemplate(&page, "page.html", struct {
		State   *state
		Inspect *inspection
	}{s.state(now), inspected})
	if err != nil {
		return failed(http.StatusInternalServerError, "the page cannot be made: %v", err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h["Cache-Control"] = noStore
	if inspected.Fault != "" {
		w.WriteHeader(http.StatusBadRequest)
	}
	w.Write(page.Bytes())
	return nil
}

// take takes an id and shows it on the page.
func (s *Server) take(w http.ResponseWriter, r *http.Request) *problem {
	p, fault := readParameters(r, []string{"generator"})
	if fault != nil {
		return fault
	}
	g, fault := s.generator(&p)
	if fault != nil {
		return fault
	}
	id, err := g.Server.Get(r.Context(), idserver.Meta{})
	if err != nil {
		return refused(g, err)
	}
	query := url.Values{"id": {string(g.format().Append(nil, id, formats.Canonical))}}
	if _, given := p.get("generator"); given {
		query.Set("generator", g.Name)
	}
	http.Redirect(w, r, "/?"+query.Encode()+"#inspector", http.StatusSeeOther)
	return nil
}

// asset is what the page is made of.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) *problem {
	return serveFile(w, r, "page/"+r.PathValue("name"))
}

// openAPI describes all that can be asked.
func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) *problem {
	return serveFile(w, r, "openapi.yaml")
}

func serveFile(w http.ResponseWriter, r *http.Request, name string) *problem {
	content, err := files.ReadFile(name)
	media := map[string]string{".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".yaml": "application/yaml"}[path.Ext(name)]
	if err != nil || media == "" {
		return failed(http.StatusNotFound, "there is no %s", quote(r.URL.Path))
	}
	if _, fault := readParameters(r, nil); fault != nil {
		return fault
	}
	sum := sha256.Sum256(content)
	h := w.Header()
	h.Set("Content-Type", mime.FormatMediaType(media, map[string]string{"charset": "utf-8"}))
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	return nil
}
