package erltext

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// expression parses one expression that is not a literal.
func expression(t *testing.T, text string) *Compound {
	t.Helper()
	exprs, _, err := Parse(text + " .")
	if err != nil || len(exprs) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	c, ok := exprs[0].(*Compound)
	if !ok {
		t.Fatalf("%s is a %T", text, exprs[0])
	}
	return c
}

// The values of a pattern's parts are those that Erlang would match. An empty want means no match.
func TestValues(t *testing.T) {
	for _, tt := range []struct{ pattern, term, want string }{
		{"{X,Y}", "{1,2}", "[1,2]"},
		{"{X,Y}", "{1,2,3}", ""},
		{"{X,Y}", "[1,2]", ""},
		{"[X|Y]", "[1,2]", "[1,[2]]"},
		{"[X|Y]", `"a"`, `[97,[]]`},
		{"[X|Y]", "[1|a]", "[1,a]"},
		{"[X|Y]", "[]", ""},
		{"[X|Y]", "a", ""},
		{"[X,Y|Z]", "[1,2,3|a]", "[1,2,[3|a]]"},
		{"[X,Y]", "[1,2]", "[1,2,[]]"},
		{"[X,Y]", "[1]", ""},
		{"#{a=>X}", "#{a=>1}", ""},
		{"<<X>>", "<<7>>", "[7]"},
		{"<<X>>", "<<7,8>>", ""},
		{"<<X>>", "<<>>", ""},
		{"<<X>>", "a", ""},
		{"<<X/binary>>", "a", ""},
		{"<<X:4,Y:12>>", "<<18,52>>", "[1,564]"},
		{"<<X:4,Y:4>>", "<<18:5>>", ""},
		{"<<X:3>>", "<<5:3>>", "[5]"},
		{"<<X:100>>", "<<1>>", ""},
		{"<<X:72>>", "<<1,0,0,0,0,0,0,0,0>>", "[18446744073709551616]"},
		{"<<X:0>>", "<<>>", "[0]"},
		{"<<X:0/signed>>", "<<>>", "[0]"},
		{"<<X/signed>>", "<<255>>", "[-1]"},
		{"<<X/signed>>", "<<127>>", "[127]"},
		{"<<X/signed-unsigned>>", "<<255>>", "[255]"},
		{"<<X:16/little>>", "<<1,2>>", "[513]"},
		{"<<X:16/little-big>>", "<<1,2>>", "[258]"},
		{"<<X:12/little>>", "<<1,2:4>>", "[513]"},
		{"<<X:16/little-signed>>", "<<0,128>>", "[-32768]"},
		{"<<X/float>>", "<<63,248,0,0,0,0,0,0>>", "[1.5]"},
		{"<<X:64/float-little>>", "<<0,0,0,0,0,0,248,63>>", "[1.5]"},
		{"<<X:32/float>>", "<<63,192,0,0>>", "[1.5]"},
		{"<<X:32/float>>", "<<127,192,0,0>>", ""}, // not a number
		{"<<X:32/float>>", "<<127,128,0,0>>", ""}, // infinity
		{"<<X:32/float>>", "<<255,128,0,0>>", ""},
		{"<<X:16/float>>", "<<0,0>>", ""},
		{"<<X/utf8,Y/binary>>", "<<195,169,1>>", "[233,<<1>>]"},
		{"<<X/utf8>>", "<<16#10FFFF/utf8>>", "[1114111]"},
		{"<<X/utf8>>", "<<16#FFFD/utf8>>", "[65533]"},
		{"<<X/utf8>>", "<<97>>", "[97]"},
		{"<<X/utf8>>", "<<255>>", ""},
		{"<<X/utf8>>", "<<>>", ""},
		{"<<X/utf8>>", "<<97:7>>", ""},
		{"<<X:1/binary,Y/bits>>", "<<1,2:4>>", "[<<1>>,<<2:4>>]"},
		{"<<X:2/bytes,Y/binary>>", "<<1,2>>", "[<<1,2>>,<<>>]"},
		{"<<X:4/bitstring,Y:4/bits>>", "<<18>>", "[<<1:4>>,<<2:4>>]"},
		{"<<X:2/binary>>", "<<1>>", ""},
		{"<<X:0/binary,Y>>", "<<1>>", "[<<>>,1]"},
		{"<<X/binary>>", "<<1:4>>", ""},
		{"<<1,X>>", "<<1,2>>", "[1,2]"},
		{"<<1,X>>", "<<2,2>>", ""},
		{`<<"ab",X>>`, `<<"abc">>`, `["ab",99]`},
		{`<<"ab",X>>`, `<<"adc">>`, ""},
		{`<<"ab",X/binary>>`, `<<"a">>`, ""},
		{`<<X,"">>`, "<<>>", ""},
		{"<<X,a>>", "<<1,97>>", ""},
		{"<<X,a>>", "<<1>>", ""},
		{"<<300,X>>", "<<44,1>>", "[300,1]"},
	} {
		values, ok := expression(t, tt.pattern).Values(literal(t, tt.term))
		if ok != (tt.want != "") || ok && !Equal(etf.List(values), literal(t, tt.want)) {
			t.Errorf("%s = %s: %s, %t, want %s", tt.pattern, tt.term, flat(etf.List(values)), ok, tt.want)
		}
	}
}

// The parts of an expression are evaluated in order. An empty want means an error.
func TestTerm(t *testing.T) {
	for _, tt := range []struct{ expr, values, want string }{
		{"{X,b,X}", "[1,b,2]", "{1,b,2}"},
		{"[X|Y]", "[1,[2,3]]", "[1,2,3]"},
		{"[X|Y]", `[1,"ab"]`, "[1,97,98]"},
		{"[X|Y]", "[1,2]", "[1|2]"},
		{"[X|Y]", "[1,[2|3]]", "[1,2|3]"},
		{"[X,Y]", "[1,2,[]]", "[1,2]"},
		{"#{X=>1,a=>2}", "[a,1,a,2]", "#{a => 2}"},
		{"#{X=>1,a=>2}", "[b,1,a,2]", "#{a => 2,b => 1}"},
		{"#{X=>1,Y=>2}", `["ab",1,[97,98],2]`, `#{"ab" => 2}`},
		{"<<X>>", "[300]", "<<44>>"},
		{"<<X>>", "[-1]", "<<255>>"},
		{"<<X:72>>", "[18446744073709551616]", "<<1,0,0,0,0,0,0,0,0>>"},
		{"<<X>>", "[[1,[2,\"a\"]]]", "<<1,2,97>>"},
		{"<<X>>", "[[1|2]]", ""},
		{"<<X>>", "[[1,a]]", ""},
		{"<<X>>", "[a]", ""},
		{"<<X>>", "[1.5]", ""},
		{"<<X:32>>", "[1.5]", ""},
		{"<<X>>", "[<<1>>]", ""},
		{"<<X:4,Y>>", "[1,2]", "<<16,2:4>>"},
		{"<<X/utf8>>", "[233]", "<<195,169>>"},
		{"<<X/utf8>>", "[-1]", ""},
		{"<<X/utf8>>", "[-4294967199]", ""}, // its low 32 bits are a character
		{"<<X/utf8>>", "[0]", "<<0>>"},
		{"<<X/utf8>>", "[16#10FFFF]", "<<244,143,191,191>>"},
		{"<<X/utf8>>", "[16#110000]", ""},
		{"<<X/utf8>>", "[4294967296]", ""},
		{"<<X/utf8>>", "[16#D800]", ""},
		{"<<X/utf8>>", "[1.5]", ""},
		{"<<X/float>>", "[1]", "<<63,240,0,0,0,0,0,0>>"},
		{"<<X:32/float>>", "[1.5]", "<<63,192,0,0>>"},
		{"<<X:16/float>>", "[1.5]", ""},
		{"<<X/float>>", "[18446744073709551616]", ""},
		{"<<X/float>>", "[a]", ""},
		{"<<X/binary>>", "[<<1,2>>]", "<<1,2>>"},
		{"<<X/binary>>", "[<<1:4>>]", ""},
		{"<<X/binary>>", "[1]", ""},
		{"<<X/binary>>", "[a]", ""},
		{"<<X:1/binary>>", "[<<1,2>>]", "<<1>>"},
		{"<<X:0/binary>>", "[<<1,2>>]", "<<>>"},
		{"<<X:3/binary>>", "[<<1,2>>]", ""},
		{"<<X/bits>>", "[<<1,2:4>>]", "<<1,2:4>>"},
		{"<<X:12/bits>>", "[<<1,2:4>>]", "<<1,2:4>>"},
		{"<<X:4/bits>>", "[<<16>>]", "<<1:4>>"},
	} {
		all, _ := etf.Elements(literal(t, tt.values))
		exprs, _, err := Parse(tt.expr + " .")
		if err != nil {
			t.Fatal(err)
		}
		c, ok := exprs[0].(*Compound)
		if !ok {
			if tt.want != "" {
				t.Errorf("%s is a %T", tt.expr, exprs[0])
			}
			continue
		}
		asked := 0
		term, err := c.Term(func(part Expr) (etf.Term, error) {
			if part != c.Parts[asked] {
				t.Errorf("%s: part %d is asked for too early or late", tt.expr, asked)
			}
			asked++
			return all[asked-1], nil
		})
		if (err == nil) != (tt.want != "") || err == nil && !Equal(term, literal(t, tt.want)) {
			t.Errorf("%s of %s: %s, %v, want %s", tt.expr, tt.values, flat(term), err, tt.want)
		}
	}
	failed := errors.New("failed")
	for _, text := range []string{"{1,X,2}", "<<1,X,2>>"} {
		asked := 0
		term, err := expression(t, text).Term(func(part Expr) (etf.Term, error) {
			if asked++; asked == 2 {
				return nil, failed
			}
			return int64(1), nil
		})
		if term != nil || err != failed || asked != 2 {
			t.Errorf("%s: %v, %v after %d parts", text, term, err, asked)
		}
	}
}

// A binary that an expression makes has at most MaxTextBytes.
func TestTermTooLong(t *testing.T) {
	half := etf.Term(make([]byte, MaxTextBytes/2))
	of := func(text string) error {
		_, err := expression(t, text).Term(func(part Expr) (etf.Term, error) {
			if l, ok := part.(*Literal); ok {
				return l.Term, nil
			}
			return half, nil
		})
		return err
	}
	if err := of("<<X/binary,X/binary>>"); err != nil {
		t.Error(err)
	}
	if of("<<X/binary,X/binary,1>>") == nil {
		t.Error("a longer binary is made")
	}
}

// Equal compares values, not the forms in which etf holds them.
func TestEqual(t *testing.T) {
	list := etf.List{int64('a'), int64('b')}
	improper := func(tail etf.Term) etf.Term { return etf.ImproperList{Elements: list, Tail: tail} }
	pair := func(key, value etf.Term) etf.Map { return etf.Map{{Key: key, Value: value}} }
	two := func(a, b etf.Term) etf.Map { return etf.Map{{Key: a, Value: a}, {Key: b, Value: b}} }
	for _, tt := range []struct {
		a, b etf.Term
		want bool
	}{
		{etf.String("ab"), list, true},
		{etf.String("ab"), etf.String("ac"), false},
		{etf.Tuple{etf.String("ab")}, etf.Tuple{list}, true},
		{etf.List{etf.String("ab")}, etf.List{list}, true},
		{improper(etf.String("ab")), etf.List{int64('a'), int64('b'), int64('a'), int64('b')}, true},
		{improper(etf.Tuple{etf.String("ab")}), improper(etf.Tuple{list}), true},
		{improper(improper(etf.Atom("x"))),
			etf.ImproperList{Elements: append(slices.Clone(list), list...), Tail: etf.Atom("x")}, true},
		{etf.ImproperList{Tail: etf.Atom("x")}, etf.Atom("x"), true},
		{pair(etf.String("ab"), int64(1)), pair(list, int64(1)), true},
		{pair(int64(1), etf.String("ab")), pair(int64(1), list), true},
		{two(etf.Atom("a"), etf.Atom("b")), two(etf.Atom("b"), etf.Atom("a")), true},
		{int64(1), 1.0, false},
		{int64(1), etf.Tuple{int(1)}, false},
	} {
		if got := Equal(tt.a, tt.b); got != tt.want || Equal(tt.b, tt.a) != tt.want {
			t.Errorf("%s and %s are equal: %t", flat(tt.a), flat(tt.b), got)
		}
	}
}

// Only a pattern can be on the left of =.
func TestPatterns(t *testing.T) {
	for text, want := range map[string]bool{
		"1": true, "X": true, "_": true, "{a,[X|Y]}": true, "<<X,1>>": true, "#{a=>1}": true, "(X = {Y})": true,
		"f()": false, "{f()}": false, "[X|f()]": false, "#{a=>X}": false, "{#{a=>X}}": false, "(X = f())": false,
		"{X = f()}": false,
	} {
		_, _, err := Parse(text + " = 1.")
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "pattern") {
			t.Errorf("%s = 1: %v", text, err)
		}
	}
}
