package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

const (
	svgLabels = 260 // where the bars begin
	svgBars   = 460 // the width of a ratio of svgMost
	svgLine   = 22
	svgTop    = 56
	svgMost   = 100.0
)

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-label="flake beside OTP">
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

// svg draws how many times better than OTP flake is, on a logarithmic scale, as
// one bar a row below the name of its section, with a mark where the target is.
func (r *result) svg(w io.Writer) error {
	var rows []row
	for _, row := range r.Rows {
		if row.Than == "OTP" && row.Unit != "sleeps" && (row.Target != nil || !strings.HasPrefix(row.Unit, "µs p")) {
			rows = append(rows, row)
		}
	}
	lines, section := len(rows), ""
	for _, row := range rows {
		if row.Section != section {
			section = row.Section
			lines++
		}
	}
	var b strings.Builder
	height := svgTop + svgLine*lines + 12
	fmt.Fprintf(&b, svgHead, svgLabels+svgBars+70, height)
	fmt.Fprintf(&b, "<text x=\"8\" y=\"20\">Times better than an OTP gen_server: more calls a second, less CPU, memory and time</text>\n")
	for _, tick := range []float64{0.5, 1, 2, 5, 10, 20, 50, 100} {
		fmt.Fprintf(&b, "<line class=\"grid\" x1=\"%[1]d\" x2=\"%[1]d\" y1=\"%[2]d\" y2=\"%[3]d\"/><text class=\"small\" x=\"%[1]d\" y=\"%[4]d\" text-anchor=\"middle\">%[5]v×</text>\n",
			svgX(tick), svgTop-6, height-8, svgTop-12, tick)
	}
	y := svgTop
	section = ""
	for _, row := range rows {
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(&b, "<text class=\"section\" x=\"8\" y=\"%d\">%s</text>\n", y+13, section)
			y += svgLine
		}
		row.draw(&b, y)
		y += svgLine
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (r row) draw(b *strings.Builder, y int) {
	times := r.times(r.Ratio)
	class, from, to := "bar", svgX(1), svgX(times)
	if times < 1 {
		class, from, to = "worse", to, from
	}
	fmt.Fprintf(b, "<text x=\"8\" y=\"%d\">", y+13)
	xml.EscapeText(b, []byte(r.What+"  "+r.Unit))
	fmt.Fprintf(b, "</text><rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", class, from, y+2, max(to-from, 1), svgLine-8)
	end := to
	if r.Target != nil {
		x := svgX(r.times(r.Target.Number))
		fmt.Fprintf(b, "<line class=\"target\" x1=\"%[1]d\" x2=\"%[1]d\" y1=\"%[2]d\" y2=\"%[3]d\"/>", x, y, y+svgLine-4)
		end = max(end, x)
	}
	fmt.Fprintf(b, "<text class=\"small\" x=\"%d\" y=\"%d\">%s×</text>\n", end+6, y+13, short(times))
}

// times is how many times better a ratio of the row is.
func (r row) times(ratio float64) float64 {
	if strings.HasSuffix(r.Unit, "/s") {
		return ratio
	}
	return 1 / ratio
}

// svgX is where a ratio is drawn. The scale begins at a half.
func svgX(times float64) int {
	part := math.Log(2*times) / math.Log(2*svgMost)
	return svgLabels + int(svgBars*min(max(part, 0), 1))
}
