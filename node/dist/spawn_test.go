package dist

import (
	"math/big"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// What is not spawned is refused in OTP's words.
func TestSpawnRefused(t *testing.T) {
	big := new(big.Int).Lsh(big.NewInt(1), 8*etf.MaxIntegerBytes)
	for _, test := range []struct {
		name               string
		module             etf.Atom
		arguments, options etf.Term
		want               etf.Atom
	}{
		{"too big", "m", etf.List{big}, etf.List{}, "system_limit"},
		{"no list", "m", etf.Atom("x"), etf.List{}, "badarg"},
		{"another arity", "m", etf.List{int64(1), int64(2)}, etf.List{}, "badarg"},
		{"no option", "m", etf.List{int64(1)}, etf.List{etf.Atom("bad")}, "badopt"},
		{"no options", "m", etf.List{int64(1)}, etf.Atom("link"), "badopt"},
		{"a bad value", "m", etf.List{int64(1)}, etf.List{etf.Tuple{etf.Atom("priority"), etf.Atom("x")}}, "badopt"},
		{"refused", "not", etf.List{int64(1)}, etf.List{}, "undef"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				r.proto.Refuse = func(module, function etf.Atom, args []etf.Term) etf.Atom {
					if module == "not" && function == "f" && len(args) == 1 {
						return "undef"
					}
					return ""
				}
				request := etf.Tuple{
					number(opSpawnRequest), ref5, theirs, theirs, etf.Tuple{test.module, etf.Atom("f"), int64(1)}, test.options,
				}
				r.send(frame(request, external(test.arguments)))
				r.want(frame(etf.Tuple{number(opSpawnReply), ref5, theirs, int64(0), test.want}))
			})
		})
	}
}
