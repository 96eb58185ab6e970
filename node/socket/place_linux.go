package socket

import "golang.org/x/sys/unix"

// place is a processor on which alone a thread runs, and where it lets others go on
// that are running (SCHED_BATCH of sched(7)): a BEAM that sends call after call then
// is not stopped at each.
type place struct {
	taken bool
	cpu   int
	usual how // before it was taken
}

// take has the calling thread run there, or as it did before if it may not.
func (p *place) take(cpu int) {
	if p.taken && p.cpu == cpu {
		return
	}
	if p.taken {
		p.confine()
	} else {
		var err error
		if p.usual, err = usually(); err != nil {
			return
		}
	}
	there := only(cpu)
	if !p.usual.processors.IsSet(cpu) || unix.SchedSetaffinity(0, &there) != nil {
		p.leave()
		return
	}
	if !p.taken && p.usual.attr.Policy == unix.SCHED_NORMAL { // another is an operator's choice
		batch := p.usual.attr
		batch.Policy = unix.SCHED_BATCH
		unix.SchedSetAttr(0, &batch, 0) // without it the rest is slower
	}
	p.taken, p.cpu = true, cpu
}

// leave has the calling thread run as it did before take.
func (p *place) leave() error {
	if !p.taken {
		return nil
	}
	p.confine()
	err := unix.SchedSetaffinity(0, &p.usual.processors)
	if err == nil && p.usual.attr.Policy == unix.SCHED_NORMAL {
		err = unix.SchedSetAttr(0, &p.usual.attr, 0)
	}
	p.taken = err != nil
	return err
}

// confine has usual be where the thread may run now, if somebody has changed that
// since take.
func (p *place) confine() {
	var now unix.CPUSet
	if unix.SchedGetaffinity(0, &now) == nil && now != only(p.cpu) {
		p.usual.processors = now
	}
}

func only(cpu int) (set unix.CPUSet) {
	set.Set(cpu)
	return set
}

// how is where and how a thread runs that follows nobody.
type how struct {
	processors unix.CPUSet
	attr       unix.SchedAttr
}

// usually asks each time: an operator may change it.
func usually() (h how, err error) {
	if err = unix.SchedGetaffinity(0, &h.processors); err != nil {
		return h, err
	}
	attr, err := unix.SchedGetAttr(0, 0)
	if err == nil {
		h.attr = *attr
	}
	return h, err
}
