package etf

// Caps is what a peer knows, each field the distribution flag of that name. The zero value is the oldest peer.
type Caps struct {
	UTF8Atoms     bool // UTF8_ATOMS: SMALL_ATOM_UTF8_EXT, ATOM_UTF8_EXT; else Latin-1
	SmallAtomTags bool // SMALL_ATOM_TAGS: SMALL_ATOM_EXT; else ATOM_EXT
	BigCreation   bool // BIG_CREATION: NEW_PID_EXT, NEW_PORT_EXT, NEWER_REFERENCE_EXT; else those with 1 byte
	V4NC          bool // V4_NC: V4_PORT_EXT; else NEW_PORT_EXT, for a number that fits
	NewFloats     bool // NEW_FLOATS: NEW_FLOAT_EXT; else FLOAT_EXT
	MapTag        bool // MAP_TAG: MAP_EXT; else maps are errors
	ExportPtrTag  bool // EXPORT_PTR_TAG: EXPORT_EXT; else external funs are errors
	BitBinaries   bool // BIT_BINARIES: BIT_BINARY_EXT; else bit strings are errors
}

// AllCaps are those of a peer that knows everything, as OTP 25 and later do.
var AllCaps = Caps{true, true, true, true, true, true, true, true}
