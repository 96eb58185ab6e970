package simulate

import (
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// glitch has the clock be far ahead for less than a node takes to believe it,
// asked for ids or not, perhaps killed meanwhile. A node that has ids before has
// them when the clock is right again.
func (l *life) glitch() {
	rng := l.m.rng
	fit := l.fit()
	l.report.Glitches++
	l.m.glitch(tick.MaxStep+l.m.span(40*24*time.Hour), l.m.span(tick.Doubt-10*time.Second))
	for l.m.ends > 0 {
		wait := min(l.m.span(10*time.Second), l.m.ends-l.m.now)
		if l.node == nil {
			l.m.pass(wait)
			continue
		}
		l.live(wait)
		if rng.IntN(3) > 0 {
			l.ids(0, 1+rng.IntN(3))
		}
		if rng.IntN(8) == 0 {
			l.kill()
		}
	}
	if l.node == nil {
		if err := l.start(allowable); err != nil {
			if fit {
				l.ledger.wrong(&l.report.Lost, "the clock was ahead, and now it does not start: %v", err)
			}
			return
		}
	}
	if fit && !l.answers() {
		l.ledger.wrong(&l.report.Lost, "the clock was ahead, and now there are no ids")
	}
}

// fit tells whether nothing is wrong with the node but what comes now.
func (l *life) fit() bool {
	m := l.m
	well := m.Disk.fails == nil && m.Disk.slow == 0 && m.Disk.armed == 0 && m.armed == 0 && m.now >= m.frozen
	return l.Mark != nil && !l.Drifts && well && m.wall() >= m.top && !m.doubtful() && l.answers()
}

func (l *life) answers() bool {
	errors := l.report.Errors
	l.ids(0, 1)
	return l.report.Errors == errors
}
