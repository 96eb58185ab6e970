package epmd

import "fmt"

// State says which EPMD a node uses and whether it is registered there.
type State struct {
	Addr       string // of the EPMD, empty if the node uses none
	Serving    bool   // the EPMD is our own
	Registered bool
	Creation   uint32 // of the registration
	Err        error  // why the node is not registered, if known
}

// String describes the state to an operator.
func (s State) String() string {
	switch {
	case s.Addr == "":
		return "not registered: EPMD is off"
	case s.Registered && s.Serving:
		return fmt.Sprintf("registered with the EPMD of its own at %s", s.Addr)
	case s.Registered:
		return fmt.Sprintf("registered with the EPMD at %s", s.Addr)
	case s.Err != nil:
		return fmt.Sprintf("not registered: %v", s.Err)
	}
	return fmt.Sprintf("not registered: the EPMD at %s is gone", s.Addr)
}
