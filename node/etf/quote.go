package etf

import "unicode/utf8"

// The methods below print text as the Erlang shell does on a terminal that knows Unicode. Format, which is
// for logs, prints nothing beyond Latin-1.

// atom prints an atom, between quotes if they are needed.
func (p *pretty) atom(text string) {
	if bare([]byte(text)) || text == "maybe" || text == "else" {
		p.text(text)
		return
	}
	p.quoted(text, '\'')
}

// quoted prints text between quotes.
func (p *pretty) quoted(text string, quote rune) {
	p.dst = utf8.AppendRune(p.dst, quote)
	for _, c := range text {
		p.char(c, quote)
	}
	p.dst = utf8.AppendRune(p.dst, quote)
}

// char prints a character as between quotes.
func (p *pretty) char(c, quote rune) {
	if c > 0xff {
		p.dst = utf8.AppendRune(p.dst, c)
		return
	}
	latin1 := printer{dst: p.dst, room: 4}
	latin1.char(c, quote)
	p.dst = latin1.dst
}
