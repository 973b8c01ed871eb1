#!/usr/bin/env bash
# Builds, runs both parts of the accounting bench, and writes bench/accounting/results.md: about ten minutes, as root.
#   run.sh PID DSN      a MariaDB at work whose schema holds sysbench's table sbtest1 with 100,000 rows
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -ne 2 ]; then
    echo "run.sh: give the process id of a MariaDB, and its DSN: run.sh PID DSN" >&2
    exit 2
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}"
cargo build --release -p whyso -p whyso-load -p whyso-trace --bins --examples
built=$CARGO_TARGET_DIR/release
# One descriptor a connection.
ulimit -n "$(ulimit -Hn)"
results=bench/accounting/results.md
writing=$(mktemp)
trap 'rm -f "$writing"' EXIT
{
    echo "# The account: measured"
    echo
    echo "$(date -u +%Y-%m-%d), $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), Linux $(uname -r)."
    echo
    "$built/examples/bench_accounting" planted "$built/examples/bench_client_cost" 4
    echo
    "$built/examples/bench_accounting" network "$built/examples/bench_client_cost" 4
    echo
    "$built/examples/bench_accounting" wire "$built/examples/bench_client_cost" 1
    echo
    "$built/examples/bench_accounting" server "$built/whyso" "$1" "$2" 1,2,8,64,1000
} >"$writing"
cp "$writing" "$results"
echo "written to $results"
