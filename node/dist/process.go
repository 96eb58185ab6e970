package dist

// Process is a local process as peers see it.
type Process struct {
	ID uint64 // of its pid, with the Serial in the upper 32 bits

	// Receive handles what is sent to the process, on the goroutine that read it. An
	// error is logged.
	Receive func(*Message) error

	// Kill ends the process, as exit(Pid, kill) does. If nil, peers cannot kill it.
	Kill func()
}

// Processes finds living local processes. Many connections call it at once.
type Processes interface {
	// Whereis returns the process registered as name, or nil.
	Whereis(name []byte) *Process
	// ByID returns the process with the ID, or nil.
	ByID(id uint64) *Process
}
