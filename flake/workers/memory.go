package workers

import (
	"errors"
	"fmt"

	"github.com/flake-go/flake/flake/internal/mark"
)

// Memory keeps on a node's disk what the node needs to go on with its number at once
// after a restart. Close it when done.
type Memory struct {
	file *mark.File
	kept kept
}

// kept is what a memory holds: the claim, and where ids with it begin.
type kept struct {
	number, generation, token uint64
	after                     uint64
	floor                     uint64 // the nonce of the one that the claim knew
}

const memoryWords = 4

// OpenMemory locks the file at path, which the first claim creates if there is none.
// It fails if the file is locked, or is another kind of file.
func OpenMemory(path string) (*Memory, error) { return OpenMemoryOn(mark.OS{}, path) }

// OpenMemoryOn is [OpenMemory] on a disk.
func OpenMemoryOn(disk mark.Disk, path string) (*Memory, error) {
	file, all, err := mark.Open(disk, path)
	if err != nil {
		return nil, fmt.Errorf("flake: %w", err)
	}
	m, found := all[""]
	if !found {
		m.Words = make([]uint64, memoryWords)
	}
	if len(all) > 1 || len(m.Words) != memoryWords {
		return nil, errors.Join(fmt.Errorf("flake: %s is not of a worker id; set another path", file.Path()), file.Close())
	}
	return &Memory{file, kept{m.Words[0], m.Words[1], m.Words[2], m.Milli, m.Words[3]}}, nil
}

func (m *Memory) save(k kept) error {
	err := m.file.Save(mark.Marks{"": {Milli: k.after, Words: []uint64{k.number, k.generation, k.token, k.floor}}})
	if err == nil {
		m.kept = k
	}
	return err
}

// Close gives up the lock.
func (m *Memory) Close() error { return m.file.Close() }
