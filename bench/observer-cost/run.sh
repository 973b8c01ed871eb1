#!/usr/bin/env bash
# Builds, and prints what the tracer costs on a MariaDB at work: about three minutes, as root.
#   run.sh PID SOCKET [SECONDS]     root without a password, schema whyso with sysbench's table sbtest1 of 100,000 rows
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -lt 2 ]; then
    echo "run.sh: give the process id of a MariaDB, and its socket: run.sh PID SOCKET [SECONDS]" >&2
    exit 2
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}"
cargo build --release -p whyso -p whyso-trace --examples
"$CARGO_TARGET_DIR/release/examples/bench_accounting" observer "$@"
