module github.com/flake-go/flake/scripts/mutants

go 1.26.0
