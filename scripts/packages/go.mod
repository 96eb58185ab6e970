module github.com/flake-go/flake/scripts/packages

go 1.26.0
