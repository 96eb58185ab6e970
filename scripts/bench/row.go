package main

import (
	"math"
	"slices"
	"strconv"
)

// A row is one figure of ours beside that of another.
type row struct {
	Section string  `json:"section"`
	What    string  `json:"what"`
	Unit    string  `json:"unit"`
	Than    string  `json:"than"`               // what ours is compared with
	Theirs  float64 `json:"theirs,omitempty"`   // its median
	Ours    float64 `json:"ours"`               // our median
	Floor   float64 `json:"floor,omitempty"`    // the median of the echo
	OfFloor float64 `json:"of_floor,omitempty"` // the median of ours / floor, round by round
	Ratio   float64 `json:"ratio"`              // the median of ours / theirs, round by round
	Low     float64 `json:"low"`                // the least of them
	High    float64 `json:"high"`
	Target  *target `json:"target,omitempty"`
	Met     *bool   `json:"met,omitempty"`
}

// target is what the ratio, or ours itself, is to reach.
type target struct {
	Number float64 `json:"number"`
	Less   bool    `json:"less"`    // at most so much
	OfOurs bool    `json:"of_ours"` // not of the ratio
}

func (t target) String() string {
	if t.Number >= 1e4 {
		return short(t.Number)
	}
	return strconv.FormatFloat(t.Number, 'g', -1, 64)
}

func atLeast(ratio float64) target { return target{Number: ratio} }
func atMost(ratio float64) target  { return target{Number: ratio, Less: true} }
func oursAtMost(n float64) target  { return target{Number: n, Less: true, OfOurs: true} }
func oursAtLeast(n float64) target { return target{Number: n, OfOurs: true} }

// less is no target, of what is better if it is less.
var less = target{Number: math.NaN(), Less: true}

func (r row) aim(t target) row {
	if t == (target{}) || math.IsNaN(t.Number) {
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

// versus is what was measured of two sides or all, round by round.
type versus[T any] [][]T

func newVersus[T any](n, sides int) []versus[T] {
	all := make([]versus[T], n)
	for i := range all {
		all[i] = make(versus[T], sides)
	}
	return all
}

// add measures the sides, one after the other, each round beginning with the next.
func (v versus[T]) add(round int, measure func(side int) (T, error)) error {
	for i := range v {
		side := (i + round) % len(v)
		m, err := measure(side)
		if err != nil {
			return err
		}
		v[side] = append(v[side], m)
	}
	return nil
}

func (v versus[T]) row(section, what, unit string, t target, of func(T) float64) row {
	r := compare(section, what, unit, "OTP", apply(v[theirs], of), apply(v[ours], of))
	if len(v) > floor {
		floors := apply(v[floor], of)
		r.Floor, r.OfFloor = median(floors), median(quotients(apply(v[ours], of), floors))
	}
	return r.aim(t)
}

// quotients leaves out rounds in which b has nothing.
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
