package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
)

// The level applies from the start, and can be changed.
func TestLogLevel(t *testing.T) {
	for _, format := range []string{config.LogText, config.LogJSON} {
		var b bytes.Buffer
		l := OpenLog(config.Log{Level: slog.LevelWarn, Format: format}, &b)
		l.Info("too low")
		l.Warn("high enough", "n", 1)
		l.Level.Set(slog.LevelDebug)
		l.With("n", 2).Debug("now as well", "address", addrOf("10.0.0.1"), "wait", time.Second, "worker",
			flake.Worker(1), "err", io.EOF)
		l.Close()
		want := []string{"level=WARN msg=\"high enough\" n=1",
			"level=DEBUG msg=\"now as well\" n=2 address=10.0.0.1:1 wait=1s worker=00:00:00:00:00:01 err=EOF"}
		if format == config.LogJSON {
			want = []string{`"level":"WARN","msg":"high enough","n":1}`,
				`"level":"DEBUG","msg":"now as well","n":2,"address":"10.0.0.1:1","wait":"1s",` +
					`"worker":"00:00:00:00:00:01","err":"EOF"}`}
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 2 || !strings.HasSuffix(lines[0], want[0]) || !strings.HasSuffix(lines[1], want[1]) {
			t.Errorf("%s: got\n%s", format, &b)
		}
	}
}

// Everything that a JSON log writes is an object, including the report of dropped lines.
func TestLogIsJSON(t *testing.T) {
	r, w := io.Pipe()
	l := OpenLog(config.Log{Format: config.LogJSON}, w)
	for i := range 2 * maxQueued {
		fmt.Fprintf(l.out, "{\"n\": %d}\n", i)
	}
	closed := make(chan bool)
	go func() {
		l.Close()
		<-l.out.done
		w.Close()
		close(closed)
	}()
	dropped := 0
	for d := json.NewDecoder(r); ; {
		var line struct {
			Msg   string
			Lines int
		}
		if err := d.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line.Msg, "log lines dropped") {
			dropped += line.Lines
		}
	}
	<-closed
	if dropped == 0 {
		t.Error("no line says how many were dropped")
	}
}

// flood counts the lines that the limits let through.
type flood struct {
	*slog.Logger
	limit *limiter
	b     bytes.Buffer
}

func newFlood() *flood {
	f := new(flood)
	f.limit = limit(slog.NewTextHandler(&f.b, nil))
	f.Logger = slog.New(f.limit)
	return f
}

// count returns how often part was written. The timer cannot write while it counts.
func (f *flood) count(part string) int {
	f.limit.messages.mu.Lock()
	defer f.limit.messages.mu.Unlock()
	return strings.Count(f.b.String(), part)
}

func (f *flood) reset() {
	f.limit.messages.mu.Lock()
	defer f.limit.messages.mu.Unlock()
	f.b.Reset()
}

func addrOf(host string) *net.TCPAddr { return &net.TCPAddr{IP: net.ParseIP(host), Port: 1} }

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlood()
		for range 1000 {
			f.Warn("one")
			f.With("peer", "a").Warn("two")
			f.Error("three")
		}
		f.Info("four")
		for message, want := range map[string]int{"one": burst, "two": burst, "three": burst * crowd, "four": 1} {
			if n := f.count("msg=" + message); n != want {
				t.Errorf("%d lines of %s, want %d", n, message, want)
			}
		}
		f.reset()
		time.Sleep(interval)
		for range 100 {
			f.Warn("one")
			f.Error("three")
		}
		if n, errors := f.count("msg=one"), f.count("msg=three"); n != 1 || errors != crowd {
			t.Errorf("%d lines and %d errors after an interval, want 1 and %d", n, errors, crowd)
		}
		time.Sleep(reportAfter)
		synctest.Wait()
		for _, want := range []string{
			`level=WARN msg="lines left out: too many with this message" message=one lines=1089`,
			`level=WARN msg="lines left out: too many with this message" message=two lines=990`,
			`level=ERROR msg="lines left out: too many with this message" message=three lines=990`,
		} {
			if f.count(want+"\n") != 1 {
				t.Errorf("no line %s:\n%s", want, &f.b)
			}
		}
		f.reset()
		time.Sleep(time.Hour)
		synctest.Wait()
		if f.b.Len() > 0 {
			t.Errorf("lines left out were reported again:\n%s", &f.b)
		}
	})
}

// No host can hide another host's lines, although all hosts together can.
func TestLimitOfHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlood()
		for range 1000 {
			f.Warn("refused", "address", addrOf("192.0.2.1"))
			f.Warn("refused", "address", addrOf("192.0.2.3"))
		}
		f.Warn("refused", "address", addrOf("192.0.2.2"))
		f.Warn("refused", "address", addrOf("127.0.0.1"))
		if n, other := f.count("192.0.2.1:1"), f.count("192.0.2.2:1")+f.count("127.0.0.1:1"); n != burst || other != 2 {
			t.Errorf("%d lines of a host that floods, want %d, and %d of two others", n, burst, other)
		}
		most := 0
		for i := range 10 * maxHosts {
			f.Warn("refused", "address", addrOf(fmt.Sprintf("10.0.%d.%d", i/256, i%256)))
			most = max(most, len(f.limit.messages.all["refused"].hosts))
		}
		if n := f.count("msg=refused"); n != burst*crowd {
			t.Errorf("%d lines of all hosts, want %d", n, burst*crowd)
		}
		if most > maxHosts {
			t.Errorf("%d hosts are kept, want at most %d", most, maxHosts)
		}
		for i := range 1000 { // only a line whose address is an address counts for a host
			f.Warn("listens", "listener", addrOf(fmt.Sprintf("10.0.0.%d", i%256)))
			f.Warn("registered", "address", fmt.Sprint("host", i))
			f.Warn("registered")
		}
		if n, other := f.count("msg=listens"), f.count("msg=registered"); n != burst || other != burst {
			t.Errorf("%d and %d lines without an address, want %d", n, other, burst)
		}
		f.limit.messages.report()
	})
}

// Lines left out are reported reportAfter after the first of them, and then again.
func TestLimitReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlood()
		begin := time.Now()
		for _, step := range []struct {
			after   time.Duration // reportAfter is 10
			lines   int
			reports string // so far
		}{
			{0, burst + 1, ""},
			{5, 6, ""},
			{11, 0, "2"},
			{12, 10, "2"},
			{16, 0, "2"},
			{23, 0, "2 3"},
			{100, 0, "2 3"},
		} {
			time.Sleep(time.Until(begin.Add(step.after * reportAfter / 10)))
			synctest.Wait()
			for range step.lines {
				f.Warn("one")
			}
			var reports []string
			f.limit.messages.mu.Lock()
			for line := range strings.Lines(f.b.String()) {
				if _, n, ok := strings.Cut(strings.TrimSpace(line), " lines="); ok {
					reports = append(reports, n)
				}
			}
			f.limit.messages.mu.Unlock()
			if got := strings.Join(reports, " "); got != step.reports {
				t.Errorf("at %d: reported %q, want %q", step.after, got, step.reports)
			}
		}
	})
}

// Close reports the lines left out.
func TestCloseReports(t *testing.T) {
	var b bytes.Buffer
	l := OpenLog(config.Log{Format: config.LogText}, &b)
	for range burst + 7 {
		l.Warn("one")
	}
	l.Close()
	if !strings.Contains(b.String(), "message=one lines=7\n") {
		t.Errorf("the log ends without a report: %s", &b)
	}
}

// If there are too many different messages, the rest share one limit.
func TestLimitOfMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlood()
		for i := range 10 * maxKinds {
			f.Warn(fmt.Sprintf("message-%d", i))
		}
		if n := f.count("message-"); n != maxKinds+burst {
			t.Errorf("%d lines, want %d", n, maxKinds+burst)
		}
		f.Warn("message-0")
		if n := f.count("message-0\n"); n != 2 {
			t.Errorf("%d lines of the first message, want 2", n)
		}
		f.limit.messages.report()
	})
}
