package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// A mutant is one change of the code.
type mutant struct {
	n      int    // its number in the package, from 1
	file   string // the path from the root of the tree
	line   int
	in     string // the function
	code   string // the code before the change, on one line
	change string

	operator bool // whether it compiles only if both operands have the same number type
}

// key names a mutant without its line number, which changes with each edit above it.
func (m mutant) key() string {
	return fmt.Sprintf("%s %s: %s: %s", m.file, m.in, m.code, m.change)
}

// An insertion puts text at an offset, in place of cut bytes. Insertions at one offset are ordered
// by rank: first the ends, inner before outer, then the beginnings, outer before inner.
type insertion struct {
	at, cut, rank int
	text          string
}

// A file is one source file with all its mutants, each behind a switch.
type file struct {
	path      string
	src       []byte
	fset      *token.FileSet
	in        string       // the function being visited
	predicate bool         // whether that function returns one bool
	refused   map[int]bool // mutants that do not compile
	next      *int
	seq       int
	mutants   []mutant
	changes   []insertion
	decided   map[ast.Expr]bool // conditions that have mutants: negating these too would add nothing
}

var operators = map[token.Token][2]string{
	token.LSS: {"mutantLSS", "<="}, token.LEQ: {"mutantLEQ", "<"},
	token.GTR: {"mutantGTR", ">="}, token.GEQ: {"mutantGEQ", ">"},
	token.ADD: {"mutantADD", "-"}, token.SUB: {"mutantSUB", "+"},
	token.MUL: {"mutantMUL", "/"}, token.QUO: {"mutantQUO", "*"}, token.REM: {"mutantREM", "*"},
	token.AND: {"mutantAND", "|"}, token.OR: {"mutantOR", "&"},
}

// quiet matches statements whose removal would not compile, or need not be noticed by tests.
var quiet = regexp.MustCompile(`^(panic|(\w+\.)*[lL]og(ger)?(\(\))?\.(Debug|Info|Warn|Error))\(`)

// mutate puts mutants into a file. It numbers them from next, including the refused ones.
func mutate(path string, src []byte, next *int, refused map[int]bool) (*file, error) {
	f := &file{path: path, src: src, fset: token.NewFileSet(), refused: refused, next: next,
		decided: map[ast.Expr]bool{}}
	tree, err := parser.ParseFile(f.fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.function(d)
		case *ast.GenDecl:
			f.in, f.predicate = d.Tok.String(), false
			ast.Inspect(d, func(n ast.Node) bool {
				fn, ok := n.(*ast.FuncLit)
				if ok {
					ast.Inspect(fn.Body, f.visit)
				}
				return !ok
			})
		}
	}
	return f, nil
}

func (f *file) function(fn *ast.FuncDecl) {
	if fn.Body == nil {
		return
	}
	name := fn.Name.Name
	if fn.Recv != nil {
		t := fn.Recv.List[0].Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		name, _, _ = strings.Cut(f.text(t), "[")
		name += "." + fn.Name.Name
	}
	f.in = name
	types := fn.Type.Results
	f.predicate = types != nil && len(types.List) == 1 && f.text(types.List[0]) == "bool"
	ast.Inspect(fn.Body, f.visit)
}

func (f *file) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST && n.Tok != token.TYPE
	case *ast.ArrayType:
		return false
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.ReturnStmt:
		if f.predicate && len(n.Results) == 1 {
			if _, ok := n.Results[0].(*ast.BinaryExpr); !ok { // a BinaryExpr has its own mutants
				f.negate(n.Results[0])
			}
		}
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.BinaryExpr:
		f.binary(n)
	}
	return true
}

// statements makes mutants that each leave out one statement, except declarations.
func (f *file) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.SendStmt, *ast.IncDecStmt, *ast.GoStmt, *ast.DeferStmt:
		case *ast.SelectStmt:
			if !passes(s) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || f.text(s.Lhs[0]) == "_" {
				continue
			}
		default:
			continue
		}
		if quiet.MatchString(f.text(s)) {
			continue
		}
		if n, ok := f.add(s, "left out"); ok {
			f.wrap(s, fmt.Sprintf("if !mutantOn(%d) { ", n), " }")
		}
	}
}

// passes reports whether a select neither waits nor returns.
func passes(s *ast.SelectStmt) bool {
	waits, returns := true, false
	ast.Inspect(s.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CommClause:
			waits = waits && n.Comm != nil
		case *ast.ReturnStmt:
			returns = true
		}
		return true
	})
	return !waits && !returns
}

// condition makes two mutants of an if: one whose condition is never true, and one whose condition
// always is.
func (f *file) condition(e ast.Expr) {
	f.decided[e] = true
	if n, ok := f.add(e, "never"); ok {
		f.wrap(e, "(", fmt.Sprintf(") && !mutantOn(%d)", n))
	}
	if n, ok := f.add(e, "always"); ok {
		f.wrap(e, fmt.Sprintf("mutantOn(%d) || (", n), ")")
	}
}

// negate makes a mutant in which a condition has the opposite value.
func (f *file) negate(e ast.Expr) {
	if n, ok := f.add(e, "not"); ok {
		f.wrap(e, "((", fmt.Sprintf(") != mutantOn(%d))", n))
	}
}

func (f *file) binary(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LAND, token.LOR:
		for _, side := range []ast.Expr{e.X, e.Y} {
			f.decided[side] = true
			n, ok := f.add(e, "without "+f.text(side))
			switch {
			case ok && e.Op == token.LAND:
				f.wrap(side, fmt.Sprintf("(mutantOn(%d) || (", n), "))")
			case ok:
				f.wrap(side, fmt.Sprintf("(!mutantOn(%d) && (", n), "))")
			}
		}
	case token.EQL, token.NEQ:
		if !f.decided[e] {
			f.negate(e)
		}
	default:
		op, ok := operators[e.Op]
		if !ok {
			return
		}
		if n, ok := f.add(e, op[1]); ok {
			f.mutants[len(f.mutants)-1].operator = true
			f.wrap(e, fmt.Sprintf("%s(%d, ", op[0], n), ")")
			f.changes = append(f.changes, insertion{at: f.offset(e.OpPos), cut: len(e.Op.String()), text: ","})
		}
	}
}

// add adds a mutant and returns its number. It returns false if the mutant is refused.
func (f *file) add(n ast.Node, change string) (int, bool) {
	*f.next++
	if f.refused[*f.next] {
		return 0, false
	}
	f.mutants = append(f.mutants, mutant{
		n: *f.next, file: f.path, line: f.fset.Position(n.Pos()).Line, in: f.in, code: f.text(n), change: change,
	})
	return *f.next, true
}

func (f *file) wrap(n ast.Node, before, after string) {
	f.seq++
	f.changes = append(f.changes,
		insertion{at: f.offset(n.Pos()), rank: f.seq, text: before},
		insertion{at: f.offset(n.End()), rank: -f.seq, text: after})
}

func (f *file) offset(p token.Pos) int { return f.fset.Position(p).Offset }

// text returns a node's source with single spaces, cut short if it is long.
func (f *file) text(n ast.Node) string {
	const limit = 100
	s := strings.Join(strings.Fields(string(f.src[f.offset(n.Pos()):f.offset(n.End())])), " ")
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return s
}

// changed returns the file with its mutants.
func (f *file) changed() []byte {
	slices.SortStableFunc(f.changes, func(a, b insertion) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank))
	})
	var out bytes.Buffer
	at := 0
	for _, c := range f.changes {
		out.Write(f.src[at:c.at])
		out.WriteString(c.text)
		at = c.at + c.cut
	}
	out.Write(f.src[at:])
	return out.Bytes()
}
