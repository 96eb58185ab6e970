package socket

import "golang.org/x/sys/unix"

// place is the one processor on which a thread runs, without interrupting others there
// (SCHED_BATCH of sched(7)): so a BEAM that sends call after call is not stopped at
// each.
type place struct {
	taken bool
	cpu   int
	usual unix.CPUSet // where it ran before
	batch bool        // we set its policy
}

// take moves the calling thread there, or back to where it ran if it may not.
func (p *place) take(cpu int) {
	if p.taken && p.cpu == cpu {
		return
	}
	if p.taken {
		p.confine()
	} else if unix.SchedGetaffinity(0, &p.usual) != nil {
		return
	}
	there := only(cpu)
	if !p.usual.IsSet(cpu) || unix.SchedSetaffinity(0, &there) != nil {
		p.leave()
		return
	}
	if !p.taken {
		p.batch, _ = swapPolicy(unix.SCHED_NORMAL, unix.SCHED_BATCH) // without it all is slower
	}
	p.taken, p.cpu = true, cpu
}

// leave makes the calling thread run as before take.
func (p *place) leave() error {
	if !p.taken {
		return nil
	}
	p.confine()
	err := unix.SchedSetaffinity(0, &p.usual)
	if err == nil && p.batch {
		_, err = swapPolicy(unix.SCHED_BATCH, unix.SCHED_NORMAL)
	}
	p.taken = err != nil
	return err
}

// swapPolicy changes how the calling thread is scheduled, if that is as from says:
// another policy, or other attributes, are an operator's choice.
func swapPolicy(from, to uint32) (swapped bool, err error) {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != from {
		return false, err
	}
	attr.Policy = to
	err = unix.SchedSetAttr(0, attr, 0)
	return err == nil, err
}

// confine sets usual to where the thread may run now, if somebody has changed that
// since take.
func (p *place) confine() {
	var now unix.CPUSet
	if unix.SchedGetaffinity(0, &now) == nil && now != only(p.cpu) {
		p.usual = now
	}
}

func only(cpu int) (set unix.CPUSet) {
	set.Set(cpu)
	return set
}
