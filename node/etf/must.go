package etf

// MustAppendAtom is AppendAtom for an atom that the program itself holds, or
// that came through AppendAtom's checks before. It panics where AppendAtom fails.
func MustAppendAtom(dst []byte, a Atom, caps Caps) []byte {
	dst, err := AppendAtom(dst, a, caps)
	if err != nil {
		panic(err)
	}
	return dst
}
