package idhttp

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/flake-go/flake/node/latency"
)

// rates are the rates of the seconds that a chart shows, with the current second last.
type rates []uint64

// ratesOf returns the rate at which a count rose from each sample to the next. With fewer than
// two samples, it returns a single rate of 0.
func ratesOf(all []sample, count func(*sample) uint64) (r rates) {
	for i := 1; i < len(all); i++ {
		n := count(&all[i]) - count(&all[i-1])
		r = append(r, uint64(math.Round(float64(n)/all[i].at.Sub(all[i-1].at).Seconds())))
	}
	if r == nil {
		return rates{0}
	}
	return r
}

func (r rates) rate() uint64 { return r[len(r)-1] }

// chart is a drawing that is window wide and 100 high.
type chart struct {
	Rate, Peak string // the rate now, and the highest one
	Line, Area string // the data of SVG paths
	Top, Half  string // the rate at the top, and half that rate
	Width      int
	Label      string // a description in words
}

// chart draws the rates. of names what is counted.
func (r rates) chart(of string) chart {
	peak := slices.Max(r)
	top := ceiling(peak)
	c := chart{
		Rate: thousands(r.rate()), Peak: thousands(peak), Top: short(top), Half: short(top / 2), Width: window,
	}
	c.Label = fmt.Sprintf("%s a second over the last two minutes: at most %s, now %s.", of, c.Peak, c.Rate)
	var line strings.Builder
	first := window - len(r) + 1
	for i, n := range r {
		fmt.Fprintf(&line, " L%d %.2f", first+i, 100-100*float64(n)/float64(top))
	}
	c.Line = "M" + line.String()[len(" L"):]
	c.Area = c.Line + " V100 H" + strconv.Itoa(first) + " Z"
	return c
}

// ceiling returns the first of 10, 20, 40, 100, 200, ... that is not below n. Half of each of
// these numbers is round too.
func ceiling(n uint64) uint64 {
	for power := uint64(10); ; power *= 10 {
		for _, factor := range []uint64{1, 2, 4} {
			if n <= power*factor || power > math.MaxUint64/100 {
				return power * factor
			}
		}
	}
}

// short formats a round number, such as 400000 as "400 k".
func short(n uint64) string {
	switch {
	case n >= 1e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64) + " M"
	case n >= 1e3:
		return strconv.FormatFloat(float64(n)/1e3, 'f', -1, 64) + " k"
	}
	return strconv.FormatUint(n, 10)
}

// track shows the last id, the clock and the mark on a line of width 100.
type track struct {
	Last, Now, Mark string // positions, or empty
}

// The track runs from one second before the clock to four seconds after it: the mark is two to
// three seconds ahead.
const (
	trackBefore = 1.0
	trackAfter  = 4.0
)

func trackOf(now, last, mark time.Time) track {
	at := func(t time.Time) string {
		x := 100 * (t.Sub(now).Seconds() + trackBefore) / (trackBefore + trackAfter)
		return strconv.FormatFloat(min(max(x, 0), 100), 'f', 1, 64)
	}
	t := track{Last: at(last), Now: at(now)}
	if !mark.IsZero() {
		t.Mark = at(mark)
	}
	return t
}

// within returns, as text, the time within which the given fraction of the calls was answered.
func within(c latency.Counts, part float64) string {
	if bound, ok := c.Within(part); ok {
		return brief(bound)
	}
	return "over " + brief(latency.Bounds[len(latency.Bounds)-1])
}

// brief formats a bound of latency.Bounds, such as "2.5 ms".
func brief(d time.Duration) string {
	s := d.String()
	unit := strings.IndexFunc(s, unicode.IsLetter)
	return s[:unit] + " " + s[unit:]
}

// thousands formats a count with commas, such as 1,234,567.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size formats a number of bytes, such as 1.2 MB.
func size(n uint64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	f, i := float64(n), 0
	for ; f >= 999.5; i++ {
		f /= 1000
	}
	if i == 0 || f >= 99.95 {
		return fmt.Sprintf("%.0f %s", f, units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
