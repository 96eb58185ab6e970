package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A row compares one of our figures with a rival's.
type row struct {
	Section string  `json:"section"`
	What    string  `json:"what"`
	Unit    string  `json:"unit"`
	Than    string  `json:"than"`               // what ours is compared with
	Theirs  float64 `json:"theirs,omitempty"`   // their median
	Ours    float64 `json:"ours"`               // our median
	Floor   float64 `json:"floor,omitempty"`    // the median of the echo
	OfFloor float64 `json:"of_floor,omitempty"` // the median of ours / floor, round by round
	Ratio   float64 `json:"ratio"`              // the median of ours / theirs, round by round
	Low     float64 `json:"low"`                // the lowest of these ratios; High is the highest
	High    float64 `json:"high"`
	Target  *target `json:"target,omitempty"`
	Met     *bool   `json:"met,omitempty"`
}

// target is a limit that the ratio, or our figure itself, should reach.
type target struct {
	Number float64 `json:"number"`
	Less   bool    `json:"less"`    // the limit is a maximum
	OfOurs bool    `json:"of_ours"` // the limit is on our figure instead of on the ratio
}

func atLeast(ratio float64) target { return target{Number: ratio} }
func atMost(ratio float64) target  { return target{Number: ratio, Less: true} }
func oursAtMost(n float64) target  { return target{Number: n, Less: true, OfOurs: true} }

func (r row) aim(t target) row {
	if t == (target{}) {
		return r
	}
	measured := r.Ratio
	if t.OfOurs {
		measured = r.Ours
	}
	met := measured >= t.Number
	if t.Less {
		met = measured <= t.Number
	}
	r.Target, r.Met = &t, &met
	return r
}

// The sides of a comparison.
const (
	theirs = iota
	ours
	floor
	sides
)

// versus holds the measurements of all sides, or of the first two, round by round.
type versus[T any] [][]T

// inTurn measures n things in rounds. A round measures one thing after the other, each on all
// sides. Each round starts with a different side.
func inTurn[T any](rounds, n, sides int, measure func(i, side int) (T, error)) ([]versus[T], error) {
	all := make([]versus[T], n)
	for i := range all {
		all[i] = make(versus[T], sides)
	}
	for round := range rounds {
		for i, v := range all {
			for turn := range sides {
				side := (turn + round) % sides
				m, err := measure(i, side)
				if err != nil {
					return nil, err
				}
				v[side] = append(v[side], m)
			}
		}
	}
	return all, nil
}

func (v versus[T]) row(section, what, unit string, t target, of func(T) float64) row {
	r := compare(section, what, unit, "OTP", apply(v[theirs], of), apply(v[ours], of))
	if len(v) > floor {
		floors := apply(v[floor], of)
		r.Floor, r.OfFloor = median(floors), median(quotients(apply(v[ours], of), floors))
	}
	return r.aim(t)
}

// quotients returns a/b for each round, leaving out rounds in which b is 0.
func quotients(a, b []float64) (q []float64) {
	for i := range a {
		if b[i] != 0 {
			q = append(q, a[i]/b[i])
		}
	}
	if q == nil {
		q = []float64{0}
	}
	return q
}

func compare(section, what, unit, than string, theirs, ours []float64) row {
	ratios := quotients(ours, theirs)
	return row{
		Section: section, What: what, Unit: unit, Than: than,
		Theirs: median(theirs), Ours: median(ours),
		Ratio: median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios),
	}
}

func apply[T any](all []T, of func(T) float64) []float64 {
	fs := make([]float64, len(all))
	for i, m := range all {
		fs[i] = of(m)
	}
	return fs
}

func median(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// result is the result of a whole run.
type result struct {
	Machine    string `json:"machine"`
	Processors int    `json:"processors"`
	Go         string `json:"go"`
	OTP        string `json:"otp"`
	Rounds     int    `json:"rounds"`
	Rows       []row  `json:"rows"`
}

func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d processors, %s, OTP %s\n"+
		"medians of %d rounds; the best of each in process; CPU is the server's, per call\n",
		r.Machine, r.Processors, r.Go, r.OTP, r.Rounds)
	section := ""
	for _, row := range r.Rows {
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(w, "\n%-36s %-8s %9s %9s %7s  %-15s %9s %8s %s\n", section, "", "theirs", "flake", "ratio",
				"(from - to)", "floor", "of floor", "target")
		}
		fmt.Fprintf(w, "%-36s %-8s %9s %9s %7s  %-15s %9s %8s %s\n", row.What, row.Unit,
			short(row.Theirs), shortOrZero(row.Ours), short(row.Ratio), row.spread(), short(row.Floor),
			short(row.OfFloor), row.verdict())
	}
}

func (r row) spread() string {
	if r.Low == r.High {
		return ""
	}
	return fmt.Sprintf("(%s - %s)", short(r.Low), short(r.High))
}

// verdict returns the target, and whether it is met.
func (r row) verdict() string {
	t := r.Target
	if t == nil {
		return ""
	}
	sign, unit, met := ">=", "x", "MISSED"
	if t.Less {
		sign = "<="
	}
	if t.OfOurs {
		unit = " " + r.Unit
	}
	if *r.Met {
		met = "met"
	}
	return fmt.Sprintf("%s %v%s  %s", sign, t.Number, unit, met)
}

// short returns a number with three digits, or "" for 0, which means that it was not measured.
func short(f float64) string {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return ""
	}
	return shortOrZero(f)
}

func shortOrZero(f float64) string {
	switch {
	case f >= 1e6:
		return strconv.FormatFloat(f/1e6, 'f', 2, 64) + "M"
	case f >= 1e4:
		return strconv.FormatFloat(f/1e3, 'f', 1, 64) + "k"
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case f == 0:
		return "0"
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

const (
	svgLabels = 260 // x position at which the bars begin
	svgBars   = 460 // the width of a ratio of svgMax
	svgLine   = 22
	svgTop    = 56
	svgMax    = 100.0
)

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d"
  role="img" aria-label="flake beside OTP">
<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .small { font-size: 11px; fill: #57606a } .section { font-weight: bold }
  .bar { fill: #2f81f7 } .worse { fill: #d1242f }
  .grid { stroke: #d0d7de } .target { stroke: #24292f; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 }
    .grid { stroke: #3d444d } .target { stroke: #e6edf3 }
  }
</style>
`

// svg returns a chart of how many times better flake is than OTP, on a logarithmic scale. Each row
// has a bar, below the name of its section, with a mark at the target.
func (r *result) svg() []byte {
	var bars bytes.Buffer
	y, section := svgTop, ""
	for _, row := range r.Rows {
		if row.Than != "OTP" || row.Target == nil && strings.HasPrefix(row.Unit, "µs p") {
			continue
		}
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(&bars, `<text class="section" x="8" y="%d">%s</text>`+"\n", y+13, section)
			y += svgLine
		}
		row.draw(&bars, y)
		y += svgLine
	}
	var b bytes.Buffer
	height := y + 12
	fmt.Fprintf(&b, svgHead, svgLabels+svgBars+70, height)
	b.WriteString(`<text x="8" y="20">Times better than an OTP gen_server: ` +
		"more calls a second, less CPU, memory and time</text>\n")
	for _, tick := range []float64{0.5, 1, 2, 5, 10, 20, 50, 100} {
		fmt.Fprintf(&b, `<line class="grid" x1="%[1]d" x2="%[1]d" y1="%[2]d" y2="%[3]d"/>`+
			`<text class="small" x="%[1]d" y="%[4]d" text-anchor="middle">%[5]v×</text>`+"\n",
			svgX(tick), svgTop-6, height-8, svgTop-12, tick)
	}
	bars.WriteTo(&b)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (r row) draw(b *bytes.Buffer, y int) {
	times := r.times(r.Ratio)
	class, from, to := "bar", svgX(1), svgX(times)
	if times < 1 {
		class, from, to = "worse", to, from
	}
	fmt.Fprintf(b, `<text x="8" y="%d">`, y+13)
	xml.EscapeText(b, []byte(r.What+"  "+r.Unit))
	fmt.Fprintf(b, `</text><rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`,
		class, from, y+2, max(to-from, 1), svgLine-8)
	end := to
	if r.Target != nil {
		x := svgX(r.times(r.Target.Number))
		fmt.Fprintf(b, `<line class="target" x1="%[1]d" x2="%[1]d" y1="%[2]d" y2="%[3]d"/>`, x, y, y+svgLine-4)
		end = max(end, x)
	}
	fmt.Fprintf(b, `<text class="small" x="%d" y="%d">%s×</text>`+"\n", end+6, y+13, short(times))
}

// times converts one of the row's ratios into how many times better ours is.
func (r row) times(ratio float64) float64 {
	if strings.HasSuffix(r.Unit, "/s") {
		return ratio
	}
	return 1 / ratio
}

// svgX returns the x position of a ratio. The scale starts at one half.
func svgX(times float64) int {
	part := math.Log(2*times) / math.Log(2*svgMax)
	return svgLabels + int(svgBars*min(max(part, 0), 1))
}
