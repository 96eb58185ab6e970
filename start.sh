#!/bin/sh
# Builds the node and runs it in the foreground. Arguments are passed to the node.
set -eu
cd "$(dirname "$0")"
go build -o rel/flake/bin/flake ./rel/flake
exec rel/flake/bin/flake -config rel/files/sys.toml "$@"
