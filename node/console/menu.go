package console

import (
	"fmt"
	"io"
)

// menu is what Ctrl-C opens. It has the two of erl's choices that people use.
type menu struct {
	out    io.Writer
	abort  func()
	open   bool
	choice []byte // the line typed so far
}

const menuText = "BREAK: (a)bort (c)ontinue\r\n"

func (m *menu) show() {
	m.open, m.choice = true, nil
	io.WriteString(m.out, "\r\n"+menuText)
}

// key handles a key while the menu is open. As in erl, Enter makes the choice and a second Ctrl-C aborts.
func (m *menu) key(key byte) {
	switch {
	case key == ctrlC:
		m.choose('a')
	case key == '\r' || key == '\n':
		io.WriteString(m.out, "\r\n")
		if len(m.choice) > 0 {
			m.choose(m.choice[0])
		}
		m.choice = nil
	case key >= ' ' && key <= '~':
		m.choice = append(m.choice, key)
		m.out.Write([]byte{key})
	}
}

func (m *menu) choose(choice byte) {
	switch choice {
	case 'a':
		m.abort()
	case 'c':
		m.open = false
	default:
		fmt.Fprintf(m.out, "Invalid option '%c'. Please enter one of the following:\r\n"+menuText, choice)
	}
}
