#!/bin/sh
# Builds the node and runs it in the foreground. Arguments are passed to the node.
set -eu
cd "$(dirname "$0")"

need=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
have=$(go version) || true # Go 1.21 or later first downloads the version in go.mod, if it is newer
minor=$(expr "$have" : 'go version .*go1\.\([0-9]*\)') || true
if [ "${minor:-0}" -lt "${need#1.}" ]; then
  cat >&2 << END
start.sh: needs Go $need or later (https://go.dev/doc/install); here is: ${have:-no Go that runs}
Without Go, try the container image, on this machine only:
  docker run --rm -e FLAKE_COOKIE=\$(openssl rand -hex 16) -e FLAKE_HTTP_OPEN=true \\
    -p 127.0.0.1:8465:8465 ghcr.io/flake-go/flake:0.1.0
or an archive of the release, https://github.com/flake-go/flake/releases; in its directory:
  ./flake -config sys.toml
END
  exit 1
fi
# Go refuses to build in a checkout that git does not read, such as another user's.
git status > /dev/null 2>&1 || export GOFLAGS="${GOFLAGS-} -buildvcs=false"
CGO_ENABLED=0 go build -o rel/flake/bin/flake ./rel/flake # as in the releases
exec rel/flake/bin/flake -config rel/files/sys.toml "$@"
