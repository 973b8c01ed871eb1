#!/usr/bin/env bash
# Builds, measures everything, and writes bench/client-cost/results.md. On a quiet machine: about 90 minutes.
#   run.sh [--quick]      --quick: rounds of one second, to see that it all works; its figures mean nothing
# ENGINES=auto,epoll,io-uring names the engines that are compared (auto where it is not set).
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}"
engines=${ENGINES:-auto}
common=()
case "${1:-}" in
    "") ;;
    --quick) common=(--seconds 1 --rounds 1 --rows 10000 --users 2,32,128) ;;
    *)
        echo "run.sh: '$1' is unknown: give --quick or nothing" >&2
        exit 2
        ;;
esac
cargo build --release -p whyso -p whyso-load --bins --examples
bench=$CARGO_TARGET_DIR/release/examples/bench_client_cost
# One descriptor a connection.
ulimit -n "$(ulimit -Hn)"
if [ "$(nproc)" -gt 1 ]; then
    # What answers has a CPU of its own, so that the client's are the client's alone.
    apart=(--null-cpus "$(($(nproc) - 1))" --client-cpus "0-$(($(nproc) - 2))")
else
    apart=()
fi
results=bench/client-cost/results.md
writing=$(mktemp)
trap 'rm -f "$writing"' EXIT
failed=0
measure() {
    "$bench" "$@" "${common[@]}" >>"$writing" || failed=1
}
{
    echo "# What the client costs: measured"
    echo
    echo "$(date -u +%Y-%m-%d), $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), Linux $(uname -r)," \
        "$(mariadbd --version 2>/dev/null | sed 's/.*Ver \([^ ]*\).*/\1/'), $(sysbench --version | head -1)," \
        "\`run.sh ${1:-}\`, engines $engines, $(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')."
    echo
} >"$writing"
measure server --engines "$engines"
measure null --engines "$engines" "${apart[@]}"
measure many --engines "$engines"
measure latency --engines epoll,io-uring
measure calls --engines "$engines"
measure lua
measure loops "${apart[@]}"
cp "$writing" "$results"
echo "written to $results"
exit "$failed"
