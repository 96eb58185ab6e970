package main

import (
	"reflect"
	"strings"
	"testing"
)

// Each round begins with a different side. The ratio is the median of the rounds' ratios.
func TestInTurn(t *testing.T) {
	var order []int
	all, err := inTurn(3, 1, 3, func(_, side int) (float64, error) {
		order = append(order, side)
		return [][3]float64{{10, 20, 1}, {40, 20, 1}, {10, 10, 1}}[(len(order)-1)/3][side], nil
	})
	if want := []int{0, 1, 2, 1, 2, 0, 2, 0, 1}; err != nil || !reflect.DeepEqual(order, want) {
		t.Errorf("inTurn measured sides %v, %v, want %v", order, err, want)
	}
	r := all[0].row("", "", "", atMost(1), func(f float64) float64 { return f })
	if r.Theirs != 10 || r.Ours != 20 || r.Ratio != 1 || r.Low != 0.5 || r.High != 2 || r.Floor != 1 || r.OfFloor != 20 ||
		!*r.Met {
		t.Errorf("%+v", r)
	}
}

// What the sections need is looked for before anything is measured.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", "")
	for only, want := range map[string]string{"http": "wrk", "veth": "nsenter", "nothing": "nothing"} {
		r, err := measure(t.Context(), "../..", shortPlan, []string{only})
		if r != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %s", only, r, err, want)
		}
	}
}
