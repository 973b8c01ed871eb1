#!/usr/bin/env bash
# Builds, measures everything part by part, and writes bench/client-cost/results.md. On a quiet machine: an estimated 40 minutes.
#   run.sh [--quick] [--seconds S] [PART…]
#   PART         measure these parts again; without one: those that have no result yet
#   --seconds S  length of a round, in place of the part's own
#   --quick      rounds of one second, to see that it all works; its figures mean nothing, and are not kept
# Each part's result is kept in bench/client-cost/parts when it is complete. So a run that was broken off goes on where it was.
# ENGINES=auto,epoll,io-uring names the engines that are compared (auto where it is not set).
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}"
engines=${ENGINES:-auto}
parts_known=(server-few server-many null many latency calls lua loops)
parts=()
common=()
quick=
while [ $# -gt 0 ]; do
    case "$1" in
        --quick)
            quick=--quick
            common+=(--seconds 1 --rounds 1 --rows 10000)
            ;;
        --seconds)
            common+=(--seconds "${2:?run.sh: --seconds needs a number}")
            shift
            ;;
        *)
            if ! printf '%s\n' "${parts_known[@]}" | grep -qx -- "$1"; then
                echo "run.sh: '$1' is unknown: give --quick, --seconds S, or parts of ${parts_known[*]}" >&2
                exit 2
            fi
            parts+=("$1")
            ;;
    esac
    shift
done
kept=bench/client-cost/parts
results=bench/client-cost/results.md
if [ -n "$quick" ]; then
    kept=$(mktemp -d)
    results=$kept/results.md
fi
mkdir -p "$kept"
if [ ${#parts[@]} -eq 0 ]; then
    for part in "${parts_known[@]}"; do
        [ -e "$kept/$part.md" ] || parts+=("$part")
    done
fi
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
writing=$(mktemp)
trap 'rm -f "$writing"' EXIT
failed=0
# measure PART SECTION OPTIONS…: what comes last among the options counts.
measure() {
    local part=$1
    shift
    {
        echo "$(date -u +%Y-%m-%d), $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), Linux $(uname -r)," \
            "$(mariadbd --version 2>/dev/null | sed 's/.*Ver \([^ ]*\).*/\1/'), $(sysbench --version | head -1)," \
            "$(git describe --always --dirty 2>/dev/null || echo 'no commit'), load average before it $(cut -d' ' -f1 /proc/loadavg)," \
            "\`bench_client_cost $* ${common[*]}\`."
        echo
    } >"$writing"
    if "$bench" "$@" "${common[@]}" >>"$writing"; then
        cp "$writing" "$kept/$part.md"
    else
        echo "run.sh: $part has no result" >&2
        failed=1
    fi
}
# Few users spread widely: all their rounds are run. With many the rounds end as soon as the ratios lie close together.
for part in "${parts[@]}"; do
    case "$part" in
        server-few) measure "$part" server --engines "$engines" --users 1,2,8 --rounds 7 --seconds 3 ;;
        server-many) measure "$part" server --engines "$engines" --users 32,128,1024 --rounds 5 --rounds-min 2 --seconds 3 ;;
        null) measure "$part" null --engines "$engines" --rounds 5 --rounds-min 3 --seconds 2 "${apart[@]}" ;;
        many) measure "$part" many --engines "$engines" --seconds 5 ;;
        latency) measure "$part" latency --engines epoll,io-uring --workloads oltp-point-select --rounds 7 --seconds 3 ;;
        calls) measure "$part" calls --engines "$engines" --users 8,32,128 --links unix --seconds 2 ;;
        lua) measure "$part" lua --rounds 5 --rounds-min 3 --seconds 2 ;;
        loops) measure "$part" loops --users 8,32,128 --rounds 3 --seconds 2 "${apart[@]}" ;;
    esac
done
{
    echo "# What the client costs: measured"
    for part in "${parts_known[@]}"; do
        [ -e "$kept/$part.md" ] || continue
        echo
        cat "$kept/$part.md"
    done
} >"$results"
echo "written to $results"
exit "$failed"
