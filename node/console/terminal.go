package console

import (
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

const (
	ctrlC     = 3
	ctrlD     = 4
	deleteKey = "\x1b[3~"
)

// terminal edits lines. It is in raw mode while open: all keys come here, and none is a signal.
type terminal struct {
	*term.Terminal
	ctx      context.Context
	file     *os.File
	state    *term.State // before raw mode
	out      io.Writer
	keys     chan []byte // typed, but not for the menu
	rest     []byte      // of what came from keys
	menu     menu
	complete []string // see completions
}

// openTerminal returns nil if the input is not a terminal. The menu's abort calls abort.
func openTerminal(ctx context.Context, options Options, abort func()) (*terminal, error) {
	file, ok := options.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, nil
	}
	state, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, err
	}
	t := &terminal{ctx: ctx, file: file, state: state, out: options.Out}
	t.keys = make(chan []byte, 1<<12) // typed meanwhile; more is lost
	t.menu = menu{out: options.Out, abort: abort}
	t.Terminal = term.NewTerminal(keyboard{t}, "")
	t.Terminal.History = history{t.Terminal.History}
	t.Terminal.AutoCompleteCallback = t.completed
	go t.pump()
	return t, nil
}

func (t *terminal) close() { term.Restore(int(t.file.Fd()), t.state) }

// pump reads keys at all times, because the menu also opens during a call.
func (t *terminal) pump() {
	defer close(t.keys)
	buf := make([]byte, 1<<12)
	for {
		n, err := t.file.Read(buf)
		if err != nil {
			return
		}
		var typed []byte
		for _, key := range buf[:n] {
			switch {
			case t.menu.open:
				if t.menu.key(key); !t.menu.open {
					t.Terminal.Write(nil) // paints the line again
				}
			case key == ctrlC:
				t.menu.show()
			case key == ctrlD: // to x/term the end of input on an empty line, to erl nothing
				typed = append(typed, deleteKey...)
			default:
				typed = append(typed, key)
			}
		}
		select {
		case t.keys <- typed:
		default: // full
		}
	}
}

// keyboard is what the line editor reads and writes.
type keyboard struct{ t *terminal }

func (k keyboard) Read(p []byte) (int, error) {
	t := k.t
	for len(t.rest) == 0 {
		select {
		case typed, ok := <-t.keys:
			if !ok {
				return 0, io.EOF
			}
			t.rest = typed
		case <-t.ctx.Done():
			return 0, context.Cause(t.ctx)
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

func (k keyboard) Write(p []byte) (int, error) { return k.t.out.Write(p) }

func (t *terminal) readLine(_ context.Context, prompt string, _ bool) (string, error) {
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

func (t *terminal) echo(prompt, text string) {
	io.WriteString(t.Terminal, prompt+strings.TrimSuffix(text, "\n")+"\n")
}

// history does not keep empty lines.
type history struct{ term.History }

func (h history) Add(line string) {
	if strings.TrimSpace(line) != "" {
		h.History.Add(line)
	}
}

// completed answers the tab key with what all functions share that begin with the word before the cursor.
func (t *terminal) completed(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	start := 1 + strings.LastIndexFunc(line[:pos], func(c rune) bool {
		return c != ':' && c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	word, common := line[start:pos], ""
	for _, name := range t.complete {
		switch {
		case !strings.HasPrefix(name, word):
		case common == "":
			common = name
		default:
			for !strings.HasPrefix(name, common) {
				common = common[:len(common)-1]
			}
		}
	}
	if common == "" {
		common = word
	}
	return line[:start] + common + line[pos:], start + len(common), true
}
