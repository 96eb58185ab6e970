package snowflake

import "fmt"

// Machine tells the generators apart: one number, or a datacenter and a worker
// in it. The zero value is datacenter 0, worker 0.
type Machine struct {
	whole      bool // worker is the machine as one number
	datacenter int
	worker     int
}

// MachineID is a machine by one number, 0 to 1023 in [Twitter] and [Idgen].
func MachineID(id int) Machine { return Machine{whole: true, worker: id} }

// DatacenterWorker is a machine by the two parts of its number, each 0 to 31 in
// [Idgen].
func DatacenterWorker(datacenter, worker int) Machine {
	return Machine{datacenter: datacenter, worker: worker}
}

// Datacenter is the datacenter that was given; not ok if one number was given
// for both.
func (m Machine) Datacenter() (datacenter int, ok bool) { return m.datacenter, !m.whole }

// Worker is the worker that was given; not ok if one number was given for both.
func (m Machine) Worker() (worker int, ok bool) {
	if m.whole {
		return 0, false
	}
	return m.worker, true
}

// number gives the machine as one number in a layout.
func (m Machine) number(l Layout) (int, error) {
	if m.whole {
		if m.worker < 0 || m.worker >= l.machines() {
			return 0, fmt.Errorf("flake: machine id %d, where 0 to %d fit", m.worker, l.machines()-1)
		}
		return m.worker, nil
	}
	if m.datacenter>>l.Datacenter != 0 {
		return 0, fmt.Errorf("flake: datacenter %d, where 0 to %d fit", m.datacenter, 1<<l.Datacenter-1)
	}
	if m.worker>>l.Worker != 0 {
		return 0, fmt.Errorf("flake: worker %d, where 0 to %d fit", m.worker, 1<<l.Worker-1)
	}
	return m.datacenter<<l.Worker | m.worker, nil
}
