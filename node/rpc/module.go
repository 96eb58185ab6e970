package rpc

import (
	"cmp"
	"slices"

	"github.com/flake-go/flake/node/etf"
)

// WithModuleInfo adds module_info/0 and module_info/1 to each module of the table. A
// module exports what can be called.
func (t Table) WithModuleInfo() Table {
	exports := map[etf.Atom][]MFA{}
	for mfa := range t {
		exports[mfa.Module] = append(exports[mfa.Module], mfa)
	}
	for module, all := range exports {
		all = append(all, MFA{module, "module_info", 0}, MFA{module, "module_info", 1})
		slices.SortFunc(all, func(a, b MFA) int {
			return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Arity, b.Arity))
		})
		var functions etf.List
		for _, mfa := range all {
			functions = append(functions, etf.Tuple{mfa.Function, int64(mfa.Arity)})
		}
		info := []etf.Pair{
			{Key: etf.Atom("module"), Value: module},
			{Key: etf.Atom("exports"), Value: functions},
			{Key: etf.Atom("attributes"), Value: etf.List{}},
			{Key: etf.Atom("compile"), Value: etf.List{}},
			{Key: etf.Atom("functions"), Value: functions}, // these two are not in module_info/0
			{Key: etf.Atom("nifs"), Value: etf.List{}},
		}
		t[MFA{module, "module_info", 0}] = func([]etf.Term) (etf.Term, error) {
			var list etf.List
			for _, item := range info[:4] {
				list = append(list, etf.Tuple{item.Key, item.Value})
			}
			return list, nil
		}
		t[MFA{module, "module_info", 1}] = func(args []etf.Term) (etf.Term, error) {
			for _, item := range info {
				if args[0] == item.Key {
					return item.Value, nil
				}
			}
			return nil, BadArgument()
		}
	}
	return t
}
