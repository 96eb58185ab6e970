// Package loadgen gets ids from a running node, as fast as the node returns them or at a fixed
// rate. It measures the calls and looks for ids that repeat.
//
// Start at [Run].
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
)

const (
	callTime   = 10 * time.Second      // limit for one call
	errorPause = 10 * time.Millisecond // pause of a caller after a failed call

	maxKinds = 20 // kinds of errors that are counted separately

	batch = 256 // spans that a caller collects before it passes them on
)

// Options describe the load.
type Options struct {
	Takers   []Taker       // one for each caller
	Duration time.Duration // the run also ends with the context
	Rate     float64       // calls per second by all callers together; 0: as many as possible

	// Progress, if not nil, is called every second with the result so far.
	Progress func(Result)
}

// Result holds the measurements.
type Result struct {
	Seconds    float64           `json:"seconds"`
	Calls      uint64            `json:"calls"` // answered calls
	IDs        uint64            `json:"ids"`
	CallsPerS  float64           `json:"calls_per_s"`
	IDsPerS    float64           `json:"ids_per_s"`
	Latency    map[string]int64  `json:"latency_us"` // p50, p90, p99, p99.9 and max
	Errors     map[string]uint64 `json:"errors"`
	Unfinished int               `json:"unfinished"` // unanswered calls at the end; they count only in max
	Compared   uint64            `json:"compared"`   // ids that were compared
	Twice      uint64            `json:"twice"`      // compared ids that repeated an earlier one

	Example formats.Number `json:"-"` // a repeated id, in the form that [Call.ID] takes
	Behind  bool           `json:"-"` // fewer calls were made than Rate requires
	Busy    float64        `json:"-"` // the fraction of its processors' time that this program used
}

type run struct {
	Options
	start   time.Time
	end     context.Context
	batches chan []span

	mu      sync.Mutex               // guards the fields below
	got     Result                   // the counts so far
	times   map[time.Duration]uint64 // how many calls took each time, rounded up
	longest time.Duration
}

// Run first makes one call for each caller, and fails if one of these calls fails. Then the callers
// call for o.Duration, at o.Rate or as often as they can. If a call starts late because the caller's
// previous call took a long time, its measured time includes the delay.
func Run(ctx context.Context, o Options) (Result, error) {
	r := &run{Options: o, batches: make(chan []span, len(o.Takers)), times: make(map[time.Duration]uint64)}
	r.got.Errors = make(map[string]uint64)
	s := seen{most: maxSpans}
	if err := r.greet(ctx, &s); err != nil {
		return Result{}, err
	}
	var others, callers sync.WaitGroup
	others.Go(func() {
		for ids := range r.batches {
			s.add(ids)
		}
		s.settle()
	})
	used := processorTime()
	r.start = time.Now()
	end, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()
	r.end = end
	if o.Progress != nil {
		others.Go(r.reportProgress)
	}
	for i, take := range o.Takers {
		callers.Go(func() { r.caller(i, take) })
	}
	callers.Wait()
	result := r.result()
	result.Busy = (processorTime() - used).Seconds() / result.Seconds / float64(runtime.GOMAXPROCS(0))
	result.Behind = o.behind(result.Calls, result.Seconds)
	close(r.batches)
	others.Wait()
	result.Compared, result.Twice, result.Example = s.compared, s.twice, s.example
	return result, nil
}

// behind reports whether the calls made are fewer than the calls due by more than 1 % plus one
// call per caller.
func (o *Options) behind(calls uint64, seconds float64) bool {
	return float64(calls) < 0.99*o.Rate*seconds-float64(len(o.Takers))
}

// greet makes one call for each caller, so that all callers are connected.
func (r *run) greet(ctx context.Context, s *seen) error {
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, errTime)
	defer cancel()
	answers, errs := make([]ids, len(r.Takers)), make([]error, len(r.Takers))
	var callers sync.WaitGroup
	for i, take := range r.Takers {
		callers.Go(func() { answers[i], errs[i] = take(ctx) })
	}
	callers.Wait()
	for i, err := range errs {
		var spans []span
		if err == nil {
			spans, err = answers[i](nil)
		}
		if err != nil {
			return err
		}
		s.add(spans)
	}
	return nil
}

func (r *run) caller(me int, take Taker) {
	spans := make([]span, 0, batch)
	for i := 0; ; i++ {
		began, ok := r.begin(me, i)
		if !ok {
			break
		}
		ctx, cancel := context.WithTimeoutCause(r.end, callTime, errTime)
		ids, err := take(ctx)
		cancel()
		took := time.Since(began)
		if r.end.Err() != nil && err != nil {
			r.unanswered(took)
			break
		}
		before := len(spans)
		if err == nil {
			spans, err = ids(spans)
		}
		if err != nil {
			r.fail(err)
			spans = spans[:before]
			continue
		}
		r.answered(took, spans[before:])
		if len(spans) >= batch {
			r.batches <- spans
			spans = make([]span, 0, batch)
		}
	}
	r.batches <- spans
}

// answered counts a call and the ids that it returned.
func (r *run) answered(took time.Duration, ids []span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got.Calls++
	for _, s := range ids {
		r.got.IDs += s.count()
	}
	r.times[roundUp(took)]++
	r.longest = max(r.longest, took)
}

// unanswered counts a call that the end of the run interrupted.
func (r *run) unanswered(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got.Unfinished++
	r.longest = max(r.longest, took)
}

// begin waits until a caller's next call is due. It returns the time from which the call is
// measured, and false at the end of the run.
func (r *run) begin(me, i int) (time.Time, bool) {
	now := time.Now()
	if r.Rate == 0 {
		return now, r.end.Err() == nil
	}
	after := float64(i*len(r.Takers)+me) / r.Rate * float64(time.Second)
	due := r.start.Add(time.Duration(min(after, math.MaxInt64/2)))
	if due.After(now) {
		ok := r.wait(due.Sub(now))
		return time.Now(), ok // the timer's delay is not measured
	}
	return due, r.end.Err() == nil
}

// wait waits for d. It returns false if the run ends first.
func (r *run) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.end.Done():
		return false
	}
}

var errTime = fmt.Errorf("no answer in %v", callTime)

var kinds = []struct {
	err  error
	word string
}{
	{errTime, errTime.Error()},
	{client.ErrLost, "connection lost"},
	{client.ErrNoProcess, "noproc"},
	{client.ErrBusy, "system_limit"},
	{client.ErrBadArgument, "badarg"},
	{flake.ErrClockBackwards, "clock_running_backwards"},
	{flake.ErrTimestampNotSaved, "timestamp_not_saved"},
	{flake.ErrClosed, "shutdown"},
}

// fail counts an error and makes the caller pause.
func (r *run) fail(err error) {
	kind := err.Error()
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			kind = k.word
			break
		}
	}
	r.mu.Lock()
	if _, known := r.got.Errors[kind]; !known && len(r.got.Errors) >= maxKinds {
		kind = "others"
	}
	r.got.Errors[kind]++
	r.mu.Unlock()
	r.wait(errorPause)
}

func (r *run) reportProgress() {
	for second := time.Tick(time.Second); ; {
		select {
		case <-second:
			r.Progress(r.result())
		case <-r.end.Done():
			return
		}
	}
}

// result returns the measurements so far, without those that are known only at the end.
func (r *run) result() Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	got.Errors = maps.Clone(got.Errors)
	got.Seconds = time.Since(r.start).Seconds()
	got.CallsPerS, got.IDsPerS = float64(got.Calls)/got.Seconds, float64(got.IDs)/got.Seconds
	got.Latency = map[string]int64{"max": r.longest.Microseconds()}
	times := slices.Sorted(maps.Keys(r.times))
	for name, part := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999} {
		got.Latency[name] = r.percentile(times, part).Microseconds()
	}
	return got
}

// percentile returns the time that a fraction of all calls did not exceed. times are the keys of r.times, ascending.
func (r *run) percentile(times []time.Duration, part float64) time.Duration {
	left := uint64(math.Ceil(part * float64(r.got.Calls)))
	for _, took := range times {
		n := r.times[took]
		if n >= left {
			return min(took, r.longest)
		}
		left -= n
	}
	return 0
}

// roundUp sets all bits of d except the highest 7 to 1, so that there are few different times, and
// percentiles are at most 1.6 % too large.
func roundUp(d time.Duration) time.Duration {
	return d | (1<<max(bits.Len64(uint64(d))-7, 0) - 1)
}
