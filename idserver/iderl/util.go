package iderl

import (
	"math/big"
	"net"
	"strings"
	"time"
	"unicode"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/rpc"
)

// The functions of the original's module flake_util.

// maxDigits bounds the integer that asList takes, in bits.
const maxDigits = 1 << 13

// asList returns the digits of an integer in a base from 2 to 62.
func asList(args []etf.Term) (etf.Term, error) {
	n, ok := integer(args[0])
	base, known := digitsOf(args[1])
	if !ok || !known {
		return nil, rpc.BadArgument()
	}
	if n.BitLen() > maxDigits {
		return nil, &rpc.Exception{Class: rpc.Error, Reason: etf.Atom("system_limit")}
	}
	// Package big puts lower-case letters before capitals; we do the opposite.
	swap := func(r rune) rune {
		if unicode.IsLower(r) {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}
	return etf.String(strings.Map(swap, n.Text(base))), nil
}

// genID composes an id from a time, a worker and a sequence, each cut to its bits, as
// Erlang's binaries do.
func genID(args []etf.Term) (etf.Term, error) {
	var id []byte
	for i, bits := range []uint{64, 48, 16} {
		n, ok := integer(args[i])
		if !ok {
			return nil, rpc.BadArgument()
		}
		modulus := new(big.Int).Lsh(big.NewInt(1), bits)
		id = append(id, new(big.Int).Mod(n, modulus).FillBytes(make([]byte, bits/8))...)
	}
	return id, nil
}

// hwAddrToInt converts a MAC address, a list of six bytes, to an integer.
func hwAddrToInt(args []etf.Term) (etf.Term, error) {
	octets, _ := etf.Elements(args[0])
	if len(octets) != 6 {
		return nil, rpc.BadArgument()
	}
	var n int64
	for _, o := range octets {
		octet, ok := o.(int64)
		if !ok || octet < 0 || octet > 255 {
			return nil, rpc.BadArgument()
		}
		n = n<<8 | octet
	}
	return n, nil
}

// currTimeMillis returns the milliseconds since 1970-01-01 UTC.
func currTimeMillis([]etf.Term) (etf.Term, error) { return time.Now().UnixMilli(), nil }

// getDefaultIf names the first interface that has a MAC address.
func getDefaultIf([]etf.Term) (etf.Term, error) {
	_, name, err := flake.InterfaceWorker("")
	if err != nil {
		return etf.Atom("undefined"), nil
	}
	return etf.String(name), nil
}

// getIfHwInt returns the MAC address of an interface as {ok, Integer}. A loopback's is
// 0. An interface without one raises badarg, as in the original.
func getIfHwInt(args []etf.Term) (etf.Term, error) {
	name, _ := args[0].(etf.String)
	i, err := net.InterfaceByName(string(name))
	if err != nil {
		return etf.Tuple{etf.Atom("error"), etf.Atom("if_not_found")}, nil
	}
	return hwInt(i)
}

func hwInt(i *net.Interface) (etf.Term, error) {
	octets := make(etf.List, len(i.HardwareAddr))
	for at, octet := range i.HardwareAddr {
		octets[at] = int64(octet)
	}
	if len(octets) == 0 && i.Flags&net.FlagLoopback != 0 {
		return etf.Tuple{etf.Atom("ok"), int64(0)}, nil // package net leaves out the zeros
	}
	n, err := hwAddrToInt([]etf.Term{octets})
	if err != nil {
		return nil, err
	}
	return etf.Tuple{etf.Atom("ok"), n}, nil
}

func integer(t etf.Term) (*big.Int, bool) {
	switch n := t.(type) {
	case int64:
		return big.NewInt(n), true
	case *big.Int:
		return n, true
	}
	return nil, false
}
