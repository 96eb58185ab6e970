package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
)

// result is a whole run.
type result struct {
	Machine    string `json:"machine"`
	Processors int    `json:"processors"`
	Go         string `json:"go"`
	OTP        string `json:"otp"`
	Rounds     int    `json:"rounds"`
	Rows       []row  `json:"rows"`
}

func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d processors, %s, OTP %s\nmedians of %d rounds; the best of each in process; all of the server, a call: CPU, sleeps (waits of a thread)\n", r.Machine, r.Processors, r.Go, r.OTP, r.Rounds)
	section := ""
	for _, row := range r.Rows {
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(w, "\n%-36s %-8s %9s %9s %7s  %-15s %9s %8s %s\n", section, "", "theirs", "flake", "ratio", "(from - to)", "floor", "of floor", "target")
		}
		fmt.Fprintf(w, "%-36s %-8s %9s %9s %7s  %-15s %9s %8s %s\n", row.What, row.Unit,
			short(row.Theirs), shortOrZero(row.Ours), short(row.Ratio), row.spread(), short(row.Floor), short(row.OfFloor), row.verdict())
	}
}

func (r row) spread() string {
	if r.Low == r.High {
		return ""
	}
	return fmt.Sprintf("(%s - %s)", short(r.Low), short(r.High))
}

// verdict is the target and whether it is met.
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
	return fmt.Sprintf("%s %s%s  %s", sign, t, unit, met)
}

// markdown returns the figures that have a target, but those of other formats and
// those of allocations, as docs/figures.md shows them.
func (r *result) markdown(w io.Writer) error {
	fmt.Fprintf(w, "| %s, %d processors, %s, OTP %s | target | measured | |\n|---|---|---|---|\n", r.Machine, r.Processors, r.Go, r.OTP)
	for _, row := range r.Rows {
		if t := row.Target; t != nil && row.Section != otherFormats && row.Unit != "allocs" {
			measured, of, met := row.Ratio, " × "+row.Than, "**missed**"
			if t.OfOurs {
				measured, of = row.Ours, " "+row.Unit
			}
			if *row.Met {
				met = "met"
			}
			fmt.Fprintf(w, "| %s: %s, %s | %s%s | %s | %s |\n", row.Section, row.What, row.Unit, t, of, shortOrZero(measured), met)
		}
	}
	return nil
}

// short returns a number to three digits, and 0, which is none, as nothing.
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

func (r *result) write(file string, encode func(io.Writer) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := encode(f); err != nil {
		return err
	}
	return f.Close()
}

func (r *result) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
