module github.com/flake-go/flake/scripts/bench

go 1.26.0

require (
	github.com/flake-go/flake v0.0.0
	golang.org/x/sys v0.49.0
)

replace github.com/flake-go/flake => ../..
