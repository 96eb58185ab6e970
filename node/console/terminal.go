package console

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

const (
	ctrlC     = 3
	ctrlD     = 4
	deleteKey = "\x1b[3~"
)

// terminal edits lines. While it is open, the terminal is in raw mode: all keys arrive here and none raises a signal.
type terminal struct {
	*term.Terminal
	file     *os.File
	state    *term.State // before raw mode
	keys     keyboard
	complete []string // the names of the functions, with their opening parenthesis
}

// keyboard is the stream that the editor reads and writes.
type keyboard struct {
	io.Writer
	ctx   context.Context
	typed chan []byte
	rest  []byte // received from typed but not yet read
}

// openTerminal opens a terminal, which calls quit when Ctrl-C is pressed twice.
func openTerminal(ctx context.Context, options Options, quit func()) (*terminal, error) {
	state, err := term.MakeRaw(int(options.In.Fd()))
	if err != nil {
		return nil, err
	}
	t := &terminal{file: options.In, state: state}
	for _, section := range options.Help {
		for _, f := range section.Functions {
			name, _, _ := strings.Cut(f.Call, "(")
			t.complete = append(t.complete, name+"(")
		}
	}
	t.keys = keyboard{options.Out, ctx, make(chan []byte, 1<<12), nil} // room for input during a call; more is lost
	t.Terminal = term.NewTerminal(&t.keys, "")
	t.Terminal.History = history{t.Terminal.History}
	t.Terminal.AutoCompleteCallback = t.completed
	go t.pump(quit)
	return t, nil
}

func (t *terminal) close() { term.Restore(int(t.file.Fd()), t.state) }

// pump reads keys even while a call runs, so that Ctrl-C can stop the node then too.
func (t *terminal) pump(quit func()) {
	defer close(t.keys.typed)
	buf := make([]byte, 1<<12)
	for pressed := false; ; {
		n, err := t.file.Read(buf)
		if err != nil {
			return
		}
		var typed []byte
		for _, key := range buf[:n] {
			switch {
			case key == ctrlC && pressed:
				quit()
			case key == ctrlC:
				io.WriteString(t.Terminal, "Press Ctrl-C again to stop the node.\n")
			case key == ctrlD: // on an empty line x/term would end the input, but erl does nothing
				typed = append(typed, deleteKey...)
			default:
				typed = append(typed, key)
			}
			pressed = key == ctrlC
		}
		select {
		case t.keys.typed <- typed:
		default: // full
		}
	}
}

// Read waits for keys until ctx ends.
func (k *keyboard) Read(p []byte) (int, error) {
	for len(k.rest) == 0 {
		select {
		case typed, ok := <-k.typed:
			if !ok {
				return 0, io.EOF
			}
			k.rest = typed
		case <-k.ctx.Done():
			return 0, context.Cause(k.ctx)
		}
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

func (t *terminal) readLine(prompt string) (string, error) {
	t.SetSize(t.width(), 24) // the editor does not use the height
	t.SetPrompt(prompt)
	return t.ReadLine()
}

func (t *terminal) width() int {
	columns, _, err := term.GetSize(int(t.file.Fd()))
	if err != nil || columns <= 0 {
		return defaultWidth
	}
	return columns
}

// history does not keep empty lines.
type history struct{ term.History }

func (h history) Add(line string) {
	if strings.TrimSpace(line) != "" {
		h.History.Add(line)
	}
}

// completed handles the tab key. It extends the word before the cursor to the longest common prefix
// of the functions whose names begin with the word.
func (t *terminal) completed(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	start := 1 + strings.LastIndexFunc(line[:pos], func(c rune) bool {
		return c != ':' && c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	word := line[start:pos]
	common := word
	differs := func(name string) bool { return !strings.HasPrefix(name, word) }
	if names := slices.DeleteFunc(slices.Clone(t.complete), differs); len(names) > 0 {
		common = slices.Min(names)
		for last := slices.Max(names); !strings.HasPrefix(last, common); { // all names between them share this prefix
			common = common[:len(common)-1]
		}
	}
	return line[:start] + common + line[pos:], start + len(common), true
}
