#!/usr/bin/env bash
# s3_server.sh: builds versitygw, a server that speaks S3, where the long tests find it, and prints its path. scripts/s3_server pins it and all that it uses.
set -euo pipefail
cd "$(dirname "$0")/s3_server"
pinned=$(cat go.mod go.sum | sha256sum | cut -c1-16)
program=$HOME/.cache/whyso-s3/versitygw-$pinned
if [ ! -x "$program" ]; then
	command -v go >/dev/null 2>&1 || PATH="$PATH:/usr/local/go/bin"
	command -v go >/dev/null 2>&1 || {
		echo "s3_server: go is missing: install Go 1.25 or later, then type this again" >&2
		exit 1
	}
	mkdir -p "$(dirname "$program")"
	# Some minutes: it comes as source.
	timeout 1200 go build -mod=readonly -trimpath -o "$program.new" github.com/versity/versitygw/cmd/versitygw >&2
	mv "$program.new" "$program"
fi
echo "$program"
