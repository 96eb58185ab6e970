package idhttp_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/internal/testenv"
)

// browser is a headless Chromium, controlled by WebDriver (https://www.w3.org/TR/webdriver2/).
type browser struct {
	t       *testing.T
	session string // its URL
}

// patience is how long a test waits for a condition.
const patience = 5 * time.Minute

func newBrowser(t *testing.T) *browser {
	t.Helper()
	testenv.Need(t, "chromedriver", "chromium")
	cmd := exec.Command("chromedriver", "--port=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	b := &browser{t: t}
	lines := bufio.NewScanner(out)
	for b.session == "" {
		if !lines.Scan() {
			t.Fatal("chromedriver has ended")
		}
		if _, port, ok := strings.Cut(lines.Text(), "successfully on port "); ok {
			b.session = "http://127.0.0.1:" + strings.TrimSuffix(port, ".")
		}
	}
	go func() {
		for lines.Scan() { // so that chromedriver never waits for a reader
		}
	}()
	var session struct{ SessionID string }
	for end := time.Now().Add(patience); ; { // because the driver waits for Chromium for at most a minute
		err := b.try("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
			"browserName": "chrome",
			"goog:chromeOptions": map[string]any{"args": []string{
				"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
				"--disable-background-networking",
				"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
			}},
			"goog:loggingPrefs": map[string]string{"browser": "ALL"},
			"timeouts":          map[string]int64{"script": patience.Milliseconds(), "pageLoad": patience.Milliseconds()},
		}}}, &session)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	b.session += "/session/" + session.SessionID
	t.Cleanup(func() { b.do("DELETE", "", nil, nil) })
	return b
}

// do sends a command and stores its result in value.
func (b *browser) do(method, path string, body, value any) {
	b.t.Helper()
	if err := b.try(method, path, body, value); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) try(method, path string, body, value any) error {
	if body == nil {
		body = struct{}{}
	}
	payload, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, b.session+path, bytes.NewReader(payload))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var reply struct{ Value json.RawMessage }
	if err := json.NewDecoder(answer.Body).Decode(&reply); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, reply.Value)
	}
	if value != nil {
		return json.Unmarshal(reply.Value, value)
	}
	return nil
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.do("POST", "/url", map[string]string{"url": url}, nil)
}

// cdp sends a Chrome DevTools Protocol command.
func (b *browser) cdp(command string, params map[string]any) {
	b.t.Helper()
	b.do("POST", "/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, nil)
}

// script returns the value of a JavaScript expression.
func (b *browser) script(expression string, value any) {
	b.t.Helper()
	b.do("POST", "/execute/sync", map[string]any{"script": "return " + expression, "args": []any{}}, value)
}

// with calls do with the path of an element, and again if the page has replaced the element.
func (b *browser) with(selector string, do func(path string) error) {
	b.t.Helper()
	for {
		var element map[string]string
		b.do("POST", "/element", map[string]string{"using": "css selector", "value": selector}, &element)
		for _, id := range element {
			err := do("/element/" + id)
			if err == nil {
				return
			}
			if !strings.Contains(err.Error(), "stale element reference") {
				b.t.Fatal(err)
			}
		}
	}
}

func (b *browser) click(selector string) {
	b.t.Helper()
	b.with(selector, func(path string) error { return b.try("POST", path+"/click", nil, nil) })
}

// fill replaces the text in a field, as if the new text were typed.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.with(selector, func(path string) error {
		return errors.Join(b.try("POST", path+"/clear", nil, nil),
			b.try("POST", path+"/value", map[string]string{"text": text}, nil))
	})
}

func (b *browser) text(selector string) (text string) {
	b.t.Helper()
	b.with(selector, func(path string) error { return b.try("GET", path+"/text", nil, &text) })
	return text
}

// await waits until a JavaScript expression is true.
func (b *browser) await(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var ok bool
		if b.script("!!("+expression+")", &ok); ok {
			return
		}
		if time.Now().After(end) {
			var body string
			b.script("document.body.innerText", &body)
			b.t.Fatalf("still false after %v: %s\n%s", patience, expression, body)
		}
	}
}

// complaints returns the page's errors in the console, including violations of its policy. Chromium's own
// pages complain too, for example that there is no network.
func (b *browser) complaints() []string {
	b.t.Helper()
	var lines []struct{ Level, Message string }
	b.do("POST", "/se/log", map[string]string{"type": "browser"}, &lines)
	var all []string
	for _, l := range lines {
		if strings.HasPrefix(l.Message, "chrome://") {
			continue
		}
		all = append(all, fmt.Sprintf("%s: %s", l.Level, l.Message))
	}
	return all
}

// awaitText waits until an element contains text, even if another page is loaded first.
func (b *browser) awaitText(selector, text string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var element map[string]string
		err := b.try("POST", "/element", map[string]string{"using": "css selector", "value": selector}, &element)
		got := ""
		for _, id := range element {
			err = b.try("GET", "/element/"+id+"/text", nil, &got)
		}
		if strings.Contains(got, text) {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s is %q, want %q: %v", selector, got, text, err)
		}
	}
}

// size sets the size of the window, and the number of device pixels per pixel.
func (b *browser) size(width, height int, scale float64) {
	b.t.Helper()
	b.cdp("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600,
	})
}

// scheme makes the page light or dark.
func (b *browser) scheme(value string) {
	b.t.Helper()
	b.cdp("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": value}},
	})
}

// picture returns the whole page as a PNG.
func (b *browser) picture(width int, scale float64) []byte {
	b.t.Helper()
	b.size(width, 800, scale)
	var height int
	b.script("document.documentElement.scrollHeight", &height)
	b.size(width, height, scale)
	var encoded string
	b.do("GET", "/screenshot", nil, &encoded)
	png, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		b.t.Fatal(err)
	}
	return png
}
