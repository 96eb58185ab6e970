package etf

// Elements returns the elements of a proper list in whichever form it came, and whether t is one.
func Elements(t Term) ([]Term, bool) {
	switch t := t.(type) {
	case List:
		return t, true
	case String:
		elements := make([]Term, len(t))
		for i := range len(t) { // of bytes: those of text would be characters
			elements[i] = int64(t[i])
		}
		return elements, true
	}
	return nil, false
}
