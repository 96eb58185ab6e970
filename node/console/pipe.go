package console

import (
	"bufio"
	"context"
	"io"

	"github.com/flake-go/flake/node/console/erltext"
)

const defaultWidth = 80

// pipe reads lines without editing. Like erl, it shows a prompt for each expression, not for each line.
type pipe struct {
	lines chan string
	err   error // why lines was closed
	out   io.Writer
}

func newPipe(ctx context.Context, options Options) *pipe {
	p := &pipe{lines: make(chan string), out: options.Out}
	go p.pump(ctx, options.In)
	return p
}

// pump passes lines on, so that waiting for one can end before it comes.
func (p *pipe) pump(ctx context.Context, in io.Reader) {
	defer close(p.lines)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, erltext.MaxTextBytes)
	for lines.Scan() {
		select {
		case p.lines <- lines.Text():
		case <-ctx.Done():
			return
		}
	}
	p.err = lines.Err()
}

func (p *pipe) readLine(ctx context.Context, prompt string, more bool) (string, error) {
	if !more {
		io.WriteString(p.out, prompt)
	}
	select {
	case line, ok := <-p.lines:
		if ok {
			return line, nil
		}
		if p.err != nil {
			return "", p.err
		}
		return "", io.EOF
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (p *pipe) echo(prompt, _ string) { io.WriteString(p.out, prompt) }

func (p *pipe) width() int { return defaultWidth }
