package handshake

// Flags are the distribution flags, the capabilities that a node offers. Names and bits are
// those of the chapter "Distribution Flags"; flags that no code names are missing.
type Flags uint64

const (
	Published          Flags = 0x1
	ExtendedReferences Flags = 0x4
	DistMonitor        Flags = 0x8
	FunTags            Flags = 0x10
	DistMonitorName    Flags = 0x20
	NewFunTags         Flags = 0x80
	ExtendedPidsPorts  Flags = 0x100
	ExportPtrTag       Flags = 0x200
	BitBinaries        Flags = 0x400
	NewFloats          Flags = 0x800
	DistHdrAtomCache   Flags = 0x2000
	SmallAtomTags      Flags = 0x4000
	UTF8Atoms          Flags = 0x10000
	MapTag             Flags = 0x20000
	BigCreation        Flags = 0x40000
	SendSender         Flags = 0x80000
	BigSeqtraceLabels  Flags = 0x100000
	ExitPayload        Flags = 0x400000
	Handshake23        Flags = 0x1000000
	UnlinkID           Flags = 0x2000000
	// Mandatory25Digest implies all of mandatory25. It is bit 26 in OTP's dist.hrl; the
	// documentation says 36.
	Mandatory25Digest Flags = 0x4000000
	Spawn             Flags = 0x1_0000_0000
	NameMe            Flags = 0x2_0000_0000
	V4NC              Flags = 0x4_0000_0000
	Alias             Flags = 0x8_0000_0000
)

// mandatory25 are the flags that OTP 25 and later require.
const mandatory25 = ExtendedReferences | FunTags | ExtendedPidsPorts | UTF8Atoms |
	NewFunTags | ExportPtrTag | BitBinaries | NewFloats | MapTag | BigCreation | Handshake23

// Offered holds the flags of our side: every flag that a supported release requires, and no flag
// that package distribution does not implement. Without DIST_HDR_ATOM_CACHE, every frame begins with
// pass-through (112); without FRAGMENTS, no frame is split; without EXIT_PAYLOAD, a reason is part
// of its control message; and without SEND_SENDER, a send does not contain the sender.
//
// PUBLISHED is not offered, so that we are a hidden node, like a C or Java node. A published
// node would join the meshes of its callers: global would connect all callers to each other,
// and from OTP 25 on disconnect us whenever two of them lose the connection to each other
// (prevent_overlapping_partitions).
const Offered = mandatory25 | Mandatory25Digest | DistMonitor | DistMonitorName |
	SmallAtomTags | BigSeqtraceLabels | UnlinkID | Spawn | V4NC | Alias

// Has reports whether all flags of want are set.
func (f Flags) Has(want Flags) bool { return f&want == want }

// expand adds the flags that Mandatory25Digest implies.
func (f Flags) expand() Flags {
	if f.Has(Mandatory25Digest) {
		f |= mandatory25
	}
	return f
}
