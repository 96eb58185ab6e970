package idhttp_test

import (
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/idserver/idhttp/idhttptest"
	"github.com/flake-go/flake/internal/testenv"
)

var pictures = flag.String("page.pictures", "", "write pictures of the page to `DIR`")

// serve starts a server and returns its URL.
func serve(t *testing.T, condition string) string {
	t.Helper()
	url, _ := served(t, condition)
	return url
}

func served(t *testing.T, condition string) (url string, s *idhttp.Door) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = idhttptest.Door(t, condition)
	s.Serve(l, nil)
	t.Cleanup(func() { s.Stop(t.Context()) })
	return "http://" + l.Addr().String(), s
}

const (
	anID      = "0000BCeSOTXmkQcK8Ru83s"
	anIDsTime = "2026-11-20 21:04:52.979 UTC"
)

// TestPage uses the page as people do.
func TestPage(t *testing.T) {
	url, s := served(t, "up")
	b := newBrowser(t)
	b.size(1080, 800, 1)
	b.open(url)

	b.await("document.getElementById('line').getAttribute('d').includes('L')") // two events have arrived
	if got := b.text(".nodes tbody tr:first-child"); !strings.Contains(got, "payments@127.0.0.1") ||
		!strings.Contains(got, "1,000") {
		t.Errorf("the node that takes the most ids is %s", got)
	}
	if got := b.text("#callers-refused"); got != "13" {
		t.Errorf("%s callers were refused", got)
	}
	s.Log.Warn("connection refused", "peer", "<b>evil</b>@\u202ehost")
	total := b.text("#total")
	answer, err := http.Get(url + "/v1/ids?n=1000")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	b.await("document.getElementById('total').textContent != '" + total + "'")
	b.await("document.querySelector('.latency tbody')?.textContent.includes('HTTP')")
	if got := b.text(".recent li.warn"); !strings.HasSuffix(got, `connection refused peer="<b>evil</b>@\u202ehost"`) {
		t.Errorf("the latest event is %q", got)
	}
	if got := b.text(".recent li:last-child"); !strings.HasSuffix(got, "started version=0.1.0") {
		t.Errorf("the first event is %q", got)
	}

	b.fill("[name=id]", "BCeSOTXmkQcK8Ru83s")
	b.click("button.primary")
	b.await("document.querySelector('#reading .parts')")
	b.await("document.querySelector('.octet').getBoundingClientRect().bottom < innerHeight")
	if got := b.text("#reading"); !strings.Contains(got, anIDsTime) || !strings.Contains(got, "02:fc:00:00:00:01") ||
		!strings.Contains(got, "base 62") || !strings.Contains(got, "000001a1-fac6-c4f3-02fc-000000010000") {
		t.Errorf("read as %s", got)
	}
	var ones int
	if b.script("document.querySelectorAll('.octet i.one').length", &ones); ones != 31 {
		t.Errorf("%d bits are set, want 31", ones)
	}
	b.fill("[name=id]", "<script>")
	b.click("button.primary")
	b.await("document.querySelector('#reading .fault')")
	b.click("button[form=take]")
	b.await("document.querySelector('#reading .parts')")

	checkLooks(b, "page")
	var all []string
	for _, complaint := range b.complaints() {
		if !strings.Contains(complaint, "400 (Bad Request)") { // caused by <script>
			all = append(all, complaint)
		}
	}
	if len(all) > 0 {
		t.Errorf("%q", all)
	}
}

// checkLooks checks that the page fits its window and is accessible, and takes pictures. Without
// npm's axe-core it skips axe's rules.
func checkLooks(b *browser, name string) {
	b.t.Helper()
	axe, err := os.ReadFile("peertest/testdata/npm/node_modules/axe-core/axe.min.js")
	switch {
	case err == nil:
		b.do("POST", "/execute/sync", map[string]any{"script": string(axe), "args": []any{}}, nil)
	case testenv.All():
		b.t.Fatal(err)
	default:
		b.t.Log("axe-core is not installed:", err)
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for device, width := range map[string]int{"": 1080, "-phone": 360, "-tablet": 768, "-narrow": 820, "-wide": 1280} {
			b.size(width, 800, 1)
			var wide int
			if b.script("document.documentElement.scrollWidth", &wide); wide > width {
				b.t.Errorf("%s: %d pixels wide in a window of %d", scheme, wide, width)
			}
			var outside []string
			if b.script(outsideCards, &outside); len(outside) > 0 {
				b.t.Errorf("%s, %d pixels: outside its card: %q", scheme, width, outside)
			}
			var violations []string
			if len(axe) > 0 {
				b.script(axeViolations, &violations)
			}
			if len(violations) > 0 {
				b.t.Errorf("%s, %d pixels: axe: %q", scheme, width, violations)
			}
			if *pictures != "" && (width == 1080 || width == 360) {
				png := b.picture(max(width, 390), map[int]float64{1080: 1.5, 360: 2}[width])
				if err := os.WriteFile(filepath.Join(*pictures, name+"-"+scheme+device+".png"), png, 0o644); err != nil {
					b.t.Fatal(err)
				}
			}
		}
	}
}

// axeViolations returns the rules of axe-core that the page breaks, and where.
const axeViolations = `axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target).join(', ')))`

// outsideCards returns the elements that are wider than their card, unless the card scrolls.
const outsideCards = `[...document.querySelectorAll('section *, main *')].filter(e => {
  const card = e.closest('section, main').getBoundingClientRect(), box = e.getBoundingClientRect();
  return e.checkVisibility() && !e.closest('.rows, .scroll, svg, select') &&
    (box.left < card.left - 1 || box.right > card.right + 1);
}).map(e => e.outerHTML.slice(0, 60))`

// TestPageWithoutJavaScript decodes an id with the form alone.
func TestPageWithoutJavaScript(t *testing.T) {
	url := serve(t, "up")
	b := newBrowser(t)
	b.cdp("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	b.open(url)
	b.fill("[name=id]", anID)
	b.click("button.primary")
	b.awaitText("#reading .parts", anIDsTime)
	b.click("button[form=take]")
	b.awaitText("#reading .parts", time.Now().UTC().Format("2006-01-02 "))
}

// TestPageWithToken opens the page with the token as the password, and uses what the page loads.
func TestPageWithToken(t *testing.T) {
	url := serve(t, "token")
	b := newBrowser(t)
	b.open(strings.Replace(url, "://", "://any:"+idhttptest.Token+"@", 1))
	b.await("document.getElementById('line')?.getAttribute('d').includes('L')") // two events have arrived
	b.click("button[form=take]")
	b.await("document.querySelector('#reading .parts')")
	if all := b.complaints(); len(all) > 0 {
		t.Errorf("%q", all)
	}
}

// TestPageUnauthorized opens the page without the password. Chromium would ask for the password
// before it shows anything, so unasked prevents that.
func TestPageUnauthorized(t *testing.T) {
	s := idhttptest.Door(t, "token")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(unasked{w}, r)
	}))
	defer web.Close()
	b := newBrowser(t)
	b.open(web.URL)
	b.awaitText("main", "enter the token as the password")
	checkLooks(b, "unauthorized")
	for _, complaint := range b.complaints() {
		if !strings.Contains(complaint, "401 (Unauthorized)") {
			t.Error(complaint)
		}
	}
}

// unasked removes the header that makes a browser ask for a password.
type unasked struct{ http.ResponseWriter }

func (w unasked) WriteHeader(status int) {
	w.Header().Del("WWW-Authenticate")
	w.ResponseWriter.WriteHeader(status)
}

// TestPageInTrouble checks that the page shows what is wrong, since when, and what to do. It
// also checks that no id can be taken then, and that figures look stale once the node has stopped.
func TestPageInTrouble(t *testing.T) {
	url, s := served(t, "unsaved")
	b := newBrowser(t)
	b.size(1080, 800, 1)
	b.open(url)
	b.await("document.getElementById('line').getAttribute('d').includes('L')") // two events have arrived
	got := b.text(".ill")
	for _, want := range []string{"flake, orders: the time was last saved at", "Since 20", " UTC, for ",
		"room on the disk"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q, want %s", got, want)
		}
	}
	b.awaitText(".key.mark dd", "10.0 s behind the clock") // a slow machine may show more at first
	b.await(`(() => {
		const bad = getComputedStyle(document.getElementById('status')).color;
		return getComputedStyle(document.querySelector('.track .ahead')).stroke == bad &&
			getComputedStyle(document.querySelector('.key.mark dd')).color == bad;
	})()`)
	b.click("button[form=take]")
	b.awaitText("#reading .fault", "the time cannot be saved")
	checkLooks(b, "ill")
	b.size(1080, 800, 1)

	s.Stop(t.Context())
	b.awaitText("#status", "No word from the node since ")
	b.await("document.querySelector('#live.stale') && " +
		"getComputedStyle(document.querySelector('.rate')).borderTopStyle == 'dashed'")
	b.await("getComputedStyle(document.querySelector('.pair')).borderTopStyle == 'none'")
	b.click("button[form=take]")
	b.awaitText("#reading .fault", "The node does not answer.")
	checkLooks(b, "stale")
}

// TestPageOfMany shows many generators as rows of a table, each with its rate.
func TestPageOfMany(t *testing.T) {
	url := serve(t, "many")
	b := newBrowser(t)
	b.size(1080, 800, 1)
	b.open(url)
	b.await("document.getElementById('line').getAttribute('d').includes('L')")
	answer, err := http.Get(url + "/v1/ids?n=60000&generator=events_19")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	const named = ".generators tbody tr:not(.about)"
	b.await("document.querySelector('" + named + ":nth-last-child(2) td:nth-child(3)').textContent == '60,000'")
	var height, rates int
	b.script("document.documentElement.scrollHeight", &height)
	b.script("document.querySelectorAll('"+named+"').length", &rates)
	if height > 2800 || rates != 21 {
		t.Errorf("%d pixels high, %d rows", height, rates)
	}
	checkLooks(b, "many")
	for _, width := range []int{1080, 820, 360} {
		b.size(width, 800, 1)
		var cut []string
		if b.script(cutRows, &cut); len(cut) > 0 {
			b.t.Errorf("%d pixels: cut off, or too many lines: %q", width, cut)
		}
	}
}

// cutRows fills the first generators with the figures of a busy node, and returns the cells that then must
// be scrolled to, or have more than two lines.
const cutRows = `(() => {
  const rows = [...document.querySelectorAll('.generators tbody tr')].slice(0, 4);
  const busy = ['1,234,567', '123,456,789,012', '12,345,678,901', '1,234,567', '12,345', '123 ms ago', '2.5 s ahead'];
  rows.filter(r => r.className != 'about').forEach(r =>
    r.querySelectorAll('td').forEach((d, i) => d.textContent = busy[i]));
  const right = document.querySelector('.generators .rows').getBoundingClientRect().right;
  return rows.flatMap(r => [...r.children]).filter(c => c.checkVisibility() &&
    (c.getBoundingClientRect().right > right + 1 || c.getBoundingClientRect().height > 60)).map(c => c.outerHTML);
})()`

// TestPageInManyTabs opens more pages than a browser allows connections to one host.
func TestPageInManyTabs(t *testing.T) {
	url := serve(t, "up")
	b := newBrowser(t)
	for range 9 {
		var tab struct{ Handle string }
		b.do("POST", "/window/new", map[string]string{"type": "tab"}, &tab)
		b.do("POST", "/window", map[string]string{"handle": tab.Handle}, nil)
		b.open(url)
		b.await("document.getElementById('line').getAttribute('d').includes('L')")
	}
}
