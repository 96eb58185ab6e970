package generators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
)

// Start is what the node would do at startup.
type Start string

const (
	StartsAtOnce Start = "at_once"
	StartWaits   Start = "waits"
	StartRefuses Start = "refuses"
)

// Code identifies the kind of a [Finding].
type Code string

const (
	// These codes mean that the node refuses to start, or waits until the problem is solved.
	CodeFile       Code = "file"                    // cannot be read or used
	CodeBackwards  Code = "clock_running_backwards" // a mark is too far ahead
	CodeAdvanced   Code = "clock_advanced"          // a mark is older than the allowable downtime
	CodeGenerator  Code = "generator"               // cannot be opened, for any other reason
	CodeStore      Code = "store"                   // the store does not answer
	CodeRefused    Code = "store_refuses"
	CodeClockOff   Code = "clock_off" // the clock differs from those of the store's machines
	CodeNoneFree   Code = "none_free"
	CodeElsewhere  Code = "elsewhere" // the number in the file belongs to another cluster or prefix
	CodeTimeout    Code = "start_timeout"
	CodeNotClaimed Code = "not_claimed"    // the number cannot be claimed, for any other reason
	CodeByHand     Code = "number_by_hand" // a number set by hand is in the store

	// These codes mean that the node starts, but ids may repeat.
	CodeForgotten Code = "store_behind" // the store has forgotten what this node wrote
	CodeCopy      Code = "copy"         // another process uses the number in this file

	// These codes mean that the node starts and no id repeats, but that an operator must check something.
	CodeRestored Code = "restored"     // the store was restored or moved, or its floor was deleted
	CodeDamaged  Code = "file_damaged" // half of the file is damaged

	// These codes mean that nothing is wrong.
	CodeNoFile    Code = "no_file"
	CodeDrawn     Code = "worker_drawn" // a random worker id from another machine is replaced
	CodeTaken     Code = "number_taken" // another node has claimed the number, or it was released
	CodePast      Code = "number_past"  // the mark of the number has passed
	CodeFloor     Code = "floor"        // the floor was written since the number was claimed
	CodeNotWanted Code = "number_not_wanted"
)

// Finding is one result of [Check].
type Finding struct {
	Code      Code   `json:"code"`
	Wrong     bool   `json:"wrong"`
	Generator string `json:"generator,omitempty"`
	Text      string `json:"text"` // what is wrong, and what to do
}

// Report is the result of [Check]. Times are in milliseconds since 1970-01-01 UTC; 0 means
// none.
type Report struct {
	Fits       bool              `json:"fits"` // whether nothing is wrong
	Start      Start             `json:"start"`
	Wait       int64             `json:"wait"` // in ms; 0 with StartWaits means unknown
	Clock      uint64            `json:"clock"`
	File       string            `json:"file"`
	Number     *NumberReport     `json:"number,omitempty"` // nil if the node needs none
	Generators []GeneratorReport `json:"generators"`
	Findings   []Finding         `json:"findings"`
}

// NumberReport describes the number from the store.
type NumberReport struct {
	Cluster string       `json:"cluster,omitempty"`
	Prefix  string       `json:"prefix"`
	Floor   uint64       `json:"floor"`           // all ids of new claims are later than this
	Kept    *KeptReport  `json:"kept,omitempty"`  // nil if the file has no number
	Claim   *ClaimReport `json:"claim,omitempty"` // nil if no number can be claimed
}

// KeptReport describes the number in the file.
type KeptReport struct {
	Cluster   string `json:"cluster,omitempty"`
	Prefix    string `json:"prefix"`
	Number    uint64 `json:"number"`
	Mark      uint64 `json:"mark"`       // the highest mark written for the number
	StoreMark uint64 `json:"store_mark"` // the mark in the store
	StoreName string `json:"store_name"` // the owner in the store
}

// ClaimReport describes the claim that the node would make at startup.
type ClaimReport struct {
	Number  uint64 `json:"number"`
	Resumed bool   `json:"resumed"` // whether it resumes the claim in the file
	Random  bool   `json:"random"`  // whether the node may claim another free number instead
	After   uint64 `json:"after"`   // all ids are later than this
}

// GeneratorReport describes a generator, or a mark in the file without a configured generator.
type GeneratorReport struct {
	Name       string `json:"name"`
	Configured bool   `json:"configured"`
	Numbered   bool   `json:"numbered"`
	Mark       uint64 `json:"mark"`   // an upper bound on ids before the last stop
	Latest     uint64 `json:"latest"` // an upper bound on all ids ever made
	Wait       int64  `json:"wait"`   // how long it waits for its mark and its bound, in ms
}

// Planned is a generator that the node adds at startup.
type Planned[G io.Closer] struct {
	Name     string
	Numbered bool
	Open     Opener[G]
}

// Plan describes what the node does at startup.
type Plan[G io.Closer] struct {
	Timeout     time.Duration     // limit on the wait for a number; 0 means none
	MakesFolder bool              // whether the node creates the directory of the file if it is missing
	Advise      func(error) error // adds advice to errors from the store; may be nil

	// Generators returns the generators to add, in order. They use the clock and marks of s.
	Generators func(s *Set[G]) []Planned[G]
}

// Check reports what the node would do if it started now, and what is wrong. If the node is
// running, Check reports what it would do after a crash. Check rehearses the start with a
// simulated clock, and discards writes to the disk and the store, so it takes no lock and
// changes nothing.
func Check[G io.Closer](ctx context.Context, c Config, p Plan[G]) Report {
	r := &rehearsal[G]{plan: p}
	r.Start, r.File, r.Generators, r.Findings = StartsAtOnce, c.Path, []GeneratorReport{}, []Finding{}
	if c.Clock == nil {
		c.Clock = tick.SystemClock()
	}
	var unread error // why the store could not be read
	if c.Numbers != nil {
		numbers := *c.Numbers
		r.store = &shadowStore{Store: numbers.Store, clock: c.Clock,
			lists: map[string]map[string]string{}, texts: map[string]string{}}
		numbers.Store = r.store
		c.Numbers = &numbers
		r.Number = &NumberReport{Prefix: numbers.Prefix}
		// The store is read before the file, so that the file is never the older of the two.
		unread = r.look(ctx)
	}
	r.now = c.Clock()
	r.Clock, c.Clock, c.Log = r.now, func() uint64 { return r.now }, nil
	_, err := os.Stat(filepath.Dir(c.Path))
	disk := &mark.Shadow{Empty: p.MakesFolder && errors.Is(err, fs.ErrNotExist)}
	if err := r.open(disk, c); err != nil {
		r.refuse(CodeFile, "", err)
	} else {
		r.rehearse(ctx, unread)
	}
	r.Fits = !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Wrong })
	if wait := r.now - r.Clock; r.Start == StartsAtOnce && wait > 0 {
		r.Start, r.Wait = StartWaits, int64(wait)
	}
	return r.Report
}

// LastPlace returns the place of the last number in a file, or "" if the file has none or cannot be read.
// It takes no lock.
func LastPlace(path string) string {
	_, kept, _ := mark.Open(new(mark.Shadow), path)
	if kept.Number == nil {
		return ""
	}
	return workers.Place(kept.Number.Cluster, kept.Number.Prefix)
}

// longest limits the simulated wait in a rehearsal.
const longest = 10 * 24 * time.Hour

var errLong = fmt.Errorf("more than %v from now", longest)

// rehearsal is a simulated start of the node.
type rehearsal[G io.Closer] struct {
	Report
	plan  Plan[G]
	all   *Set[G]
	kept  mark.Content // content of the file
	now   uint64
	slept time.Duration // without the wait for a number

	store   *shadowStore // nil if the node needs no number
	entries []workers.Entry
	floor   workers.Floor
}

func (r *rehearsal[G]) note(code Code, generator, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{code, false, generator, fmt.Sprintf(format, args...)})
}

// wrong adds a finding. Its text leaves out the code, which the text of err may contain too.
func (r *rehearsal[G]) wrong(code Code, generator string, err error) {
	text := strings.Replace(strings.TrimPrefix(err.Error(), "flake: "), " ("+string(code)+")", "", 1)
	r.Findings = append(r.Findings, Finding{code, true, generator, text})
}

func (r *rehearsal[G]) refuse(code Code, generator string, err error) {
	r.Start = StartRefuses
	r.wrong(code, generator, err)
}

// sleep advances the simulated clock.
func (r *rehearsal[G]) sleep(_ context.Context, d time.Duration) error {
	r.now += uint64(d / time.Millisecond)
	if r.slept += d; r.slept > longest {
		return errLong
	}
	return nil
}

// look reads the store. If it fails, claim will fail too.
func (r *rehearsal[G]) look(ctx context.Context) error {
	var errs [3]error
	r.Number.Cluster, errs[0] = r.store.Cluster(ctx)
	r.floor, errs[1] = workers.ReadFloor(ctx, r.store, r.Number.Prefix)
	r.entries, errs[2] = workers.List(ctx, r.store, r.Number.Prefix)
	r.Number.Floor = r.floor.Mark
	return errors.Join(errs[:]...)
}

func (r *rehearsal[G]) open(disk mark.Disk, c Config) error {
	marks, err := durable.OpenMarksOn(disk, r.sleep, c.Path, nil, 0)
	if err != nil {
		return err
	}
	r.kept, r.File = marks.Saved()
	r.all = newSet[G](marks, r.sleep, c)
	if half := marks.Damaged(); half != "" {
		r.wrong(CodeDamaged, "", fmt.Errorf("%s: it is the %s half of %s", durable.HalfDamaged, half, r.File))
	}
	if reflect.DeepEqual(r.kept, mark.Content{}) {
		r.note(CodeNoFile, "", "there is no file yet; if this node has made ids before, put its file back")
	}
	return nil
}

func (r *rehearsal[G]) rehearse(ctx context.Context, unread error) {
	planned := r.plan.Generators(r.all)
	if n := r.kept.Number; r.store != nil {
		r.compare(unread, planned)
		r.claim(ctx)
	} else if n != nil && n.Mark >= r.now {
		r.note(CodeNotWanted, "", "the file has number %d of prefix %q, which the node no longer needs: "+
			"other nodes can claim it after %s", n.Number, n.Prefix, tick.Text(n.Mark))
	}
	for _, p := range planned {
		r.add(ctx, p)
	}
	for _, name := range slices.Sorted(maps.Keys(r.kept.Marks)) {
		if !slices.ContainsFunc(planned, func(p Planned[G]) bool { return p.Name == name }) {
			r.Generators = append(r.Generators, r.report(name))
		}
	}
}

func (r *rehearsal[G]) report(name string) GeneratorReport {
	m := r.kept.Marks[name]
	return GeneratorReport{Name: name, Mark: m.Milli, Latest: m.Latest}
}

// claim rehearses [Set.Claim], which retries until it gets a number.
func (r *rehearsal[G]) claim(ctx context.Context) {
	s := r.all
	var err error
	if s.owner, err = workers.New(*s.numbers); err != nil {
		r.refuse(CodeNotClaimed, "", err)
		return
	}
	for err = s.owner.Step(ctx); err != nil; err = s.owner.Step(ctx) {
		until, code := r.judge(err)
		if advise := r.plan.Advise; advise != nil {
			err = advise(err)
		}
		r.wrong(code, "", err)
		if errors.Is(err, workers.ErrRefused) || code == CodeNoneFree && !s.numbers.Wait {
			r.Start = StartRefuses
			return
		}
		if until < r.now { // unknown
			r.Start = StartWaits
			return
		}
		r.now = until + 1
	}
	if wait := time.Duration(r.now-r.Clock) * time.Millisecond; r.plan.Timeout > 0 && wait > r.plan.Timeout {
		r.refuse(CodeTimeout, "", fmt.Errorf("a number will be free in %v, but numbers.start_timeout is %v; "+
			"raise it, or start later", wait, r.plan.Timeout))
	}
	floor, _ := workers.ReadFloor(ctx, r.store, r.Number.Prefix) // in memory
	if r.Number.Floor = floor.Mark; floor.Nonce != r.floor.Nonce {
		r.wrong(CodeRestored, "", errors.New("the store was restored or copied, or its floor was deleted: "+
			"the start writes a floor, so that new claims get only later times; "+
			"was it meant to be used by these nodes?"))
	}
	c, _ := s.owner.Claim()
	own := slices.ContainsFunc(r.entries, func(e workers.Entry) bool {
		return e.Number == c.Number() && e.Name == s.numbers.Name
	})
	random := !c.Resumed() && !own && s.numbers.First < s.numbers.Last
	r.Number.Claim = &ClaimReport{c.Number(), c.Resumed(), random, c.After()}
	if s.fits == nil {
		return
	}
	if err := s.fits(c.Number(), r.entries); err != nil {
		r.refuse(CodeByHand, "", err)
	}
}

// judge returns the time until which claims will fail, or 0 if it is unknown, and the code for
// err, the error of a claim.
func (r *rehearsal[G]) judge(err error) (until uint64, code Code) {
	switch {
	case errors.As(err, new(workers.ElsewhereError)):
		return 0, CodeElsewhere
	case errors.Is(err, workers.ErrNoneFree):
		for _, e := range r.entries {
			if n := r.all.numbers; e.Number >= n.First && e.Number <= n.Last {
				until = min(cmp.Or(until, e.Mark), e.Mark)
			}
		}
		return until, CodeNoneFree
	case errors.Is(err, workers.ErrRefused):
		return 0, CodeRefused
	case errors.As(err, new(workers.ClockError)):
		return 0, CodeClockOff
	}
	return 0, CodeStore // writes always succeed
}

// add rehearses [Set.Add].
func (r *rehearsal[G]) add(ctx context.Context, p Planned[G]) {
	report := r.report(p.Name)
	report.Configured, report.Numbered = true, p.Numbered
	before := r.now
	if !p.Numbered || r.Number.Claim != nil {
		_, err := r.all.Add(ctx, p.Name, p.Numbered, p.Open)
		switch {
		case errors.Is(err, tick.ErrClockBackwards):
			r.refuse(CodeBackwards, p.Name, err)
		case errors.Is(err, tick.ErrClockAdvanced):
			r.refuse(CodeAdvanced, p.Name, err)
		case errors.Is(err, errLong):
			r.Start = StartWaits
			r.wrong(CodeGenerator, p.Name, err)
		case err != nil:
			r.refuse(CodeGenerator, p.Name, err)
		}
		report.Wait = int64(r.now - before)
	}
	r.Generators = append(r.Generators, report)
	if was, there := r.kept.Workers[p.Name]; there && was != durable.Drawn(r.all.marks, p.Name) {
		r.note(CodeDrawn, p.Name, "a new random worker id will be drawn: "+
			"the one in the file is from another machine, or from an unknown one")
	}
}

// compare compares the number and the marks in the file with those in the store.
func (r *rehearsal[G]) compare(unread error, planned []Planned[G]) {
	k := r.kept.Number
	if k == nil || k.Generation == 0 { // it was returned or lost
		return
	}
	report := &KeptReport{Cluster: k.Cluster, Prefix: k.Prefix, Number: k.Number, Mark: k.Mark}
	r.Number.Kept = report
	if unread != nil || k.Prefix != r.Number.Prefix || k.Cluster != r.Number.Cluster {
		return // claim reports why
	}
	var e workers.Entry
	if i := slices.IndexFunc(r.entries, func(e workers.Entry) bool { return e.Number == k.Number }); i >= 0 {
		e = r.entries[i]
	}
	report.StoreMark, report.StoreName = e.Mark, e.Name
	own := e.Token == k.Token
	forgotten := e.Generation < k.Generation || e.Generation == k.Generation && !own
	for _, p := range planned {
		forgotten = forgotten || p.Numbered && r.kept.Marks[p.Name].Milli > e.Mark
	}
	switch {
	case forgotten:
		r.wrong(CodeForgotten, "", fmt.Errorf("the store has forgotten what this node wrote for number %d; "+
			"if it was restored, run flake workers after-restore before any node starts", k.Number))
	case !own:
		r.note(CodeTaken, "", "number %d has been claimed by %s or released: another will be claimed", k.Number, e.Name)
	case e.Mark > k.Mark:
		r.wrong(CodeCopy, "", fmt.Errorf("the mark of number %d is %s in the store, and %s in this file: "+
			"another process uses a copy of this file, or this file is old; "+
			"stop that process, or put the right file back", k.Number, tick.Text(e.Mark), tick.Text(k.Mark)))
	case e.Mark < r.now:
		r.note(CodePast, "", "the mark of number %d has passed, at %s: the number is claimed like any other",
			k.Number, tick.Text(e.Mark))
	case k.Floor != r.floor.Nonce:
		r.note(CodeFloor, "", "the floor was written or deleted since number %d was claimed: another will be claimed",
			k.Number)
	}
}

// shadowStore returns what the store contained when it was first read; Get also returns what was
// written since. It serves one owner that claims a number. It writes nothing to the store.
type shadowStore struct {
	workers.Store
	clock func() uint64                // the real clock, to compare with the store's clocks
	lists map[string]map[string]string // by prefix
	texts map[string]string            // by key
	err   error                        // the store's first error; after it the store is not read again
}

func (s *shadowStore) List(ctx context.Context, prefix string) (map[string]string, error) {
	if s.lists[prefix] == nil && s.err == nil {
		s.lists[prefix], s.err = s.Store.List(ctx, prefix)
	}
	return s.lists[prefix], s.err
}

func (s *shadowStore) Get(ctx context.Context, keys ...string) (texts []string, err error) {
	for _, key := range keys {
		if _, found := s.texts[key]; !found && s.err == nil {
			var one []string
			if one, s.err = s.Store.Get(ctx, key); s.err == nil {
				s.texts[key] = one[0]
			}
		}
		texts = append(texts, s.texts[key])
	}
	return texts, s.err
}

func (s *shadowStore) Swap(_ context.Context, _, write map[string]string) (bool, error) {
	maps.Copy(s.texts, write)
	return true, nil
}

// Cluster implements [workers.Clustered]. The id is empty if the store has none.
func (s *shadowStore) Cluster(ctx context.Context) (id string, err error) {
	if c, ok := s.Store.(workers.Clustered); ok {
		id, s.err = c.Cluster(ctx)
	}
	return id, s.err
}

// Clocks implements [workers.Dated].
func (s *shadowStore) Clocks(ctx context.Context, _ func() uint64) []time.Duration {
	if d, ok := s.Store.(workers.Dated); ok {
		return d.Clocks(ctx, s.clock)
	}
	return nil
}
