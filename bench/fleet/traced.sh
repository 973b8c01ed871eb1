#!/usr/bin/env bash
# traced.sh: CPU time of an agent that records a loaded server with its threads, against `whyso record` of the same server on the same machine. Both take
# turns under one load: PAIRS (5) windows of SECONDS (20) each. See README.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${SECONDS_EACH:-20} pairs=${PAIRS:-5} rate=${RATE:-200}
WHYSO_NATS_SERVER=$(scripts/nats_server.sh)
export WHYSO_NATS_SERVER
whyso=$(realpath "${WHYSO:-${CARGO_TARGET_DIR:-$HOME/.cache/whyso-target}/release/whyso}")
place=$(mktemp -d /var/tmp/whyso-fleet-XXXXXX)
dsn="mysql://root@localhost/whyso?socket=$place/s"
pids=()
end() {
	for ((at = ${#pids[@]} - 1; at >= 0; at--)); do
		kill "${pids[at]}" 2>/dev/null || true
		wait "${pids[at]}" 2>/dev/null || true
	done
	rm -rf "$place"
}
trap end EXIT

mariadb-install-db --no-defaults --user=root --datadir="$place/data" --auth-root-authentication-method=normal --skip-test-db >"$place/install.log" 2>&1
mariadbd --no-defaults --user=root --datadir="$place/data" --socket="$place/s" --skip-networking --log-error="$place/server.log" >/dev/null 2>&1 &
pids+=($!)
until mariadb --no-defaults --user=root --socket="$place/s" --execute "SELECT 1" >/dev/null 2>&1; do sleep 0.1; done

"$whyso" hub --folder "$place/hub" start --listen 127.0.0.1:14222 2>"$place/hub.log" &
pids+=($!)
until token=$("$whyso" hub --folder "$place/hub" invite one 2>/dev/null); do sleep 0.2; done
"$whyso" agent --folder "$place/agent" join - <<<"$token" >/dev/null
printf '[[server]]\nname = "shop"\ndsn = "mysql://root@localhost/?socket=%s"\n' "$place/s" >"$place/agent.toml"
"$whyso" agent --folder "$place/agent" run --settings "$place/agent.toml" 2>"$place/agent.log" &
agent=$!
pids+=("$agent")
until grep -q joined "$place/agent.log"; do sleep 0.2; done
printf 'hub = "hub"\n[[host]]\nname = "one"\nserver = "shop"\n' >"$place/lab.toml"

# The load lasts for all windows.
"$whyso" load oltp-read-write --dsn "$dsn" --users 8 --rate "$rate" --tables 2 --rows 10000 --warmup 0 --seconds $((pairs * 2 * (seconds + 15) + 60)) \
	>"$place/load.log" 2>&1 &
pids+=($!)
executed() { mariadb --no-defaults --user=root --socket="$place/s" --skip-column-names --execute "SHOW GLOBAL STATUS LIKE 'Com_commit'" | cut -f2; }
until [ "$(executed)" -gt 1000 ]; do sleep 0.5; done

# CPU time of all threads of a process, in nanoseconds.
cpu_ns() { cat "/proc/$1/task/"*/schedstat | awk '{ sum += $1 } END { printf "%d\n", sum }'; }

# window NAME PROCESS: records SECONDS, and prints CPU milliseconds per second of the process that reads the server, and of the command; and transactions
# per second.
window() {
	local name=$1 options=(--dsn "$dsn") reader command commits before
	[ "$name" = local ] || options=(--hosts "$place/lab.toml")
	"$whyso" record "${options[@]}" --for $((seconds + 8))s --out "$place/runs-$name" >"$place/record-$name.log" 2>&1 &
	command=$!
	reader=$agent
	[ "$name" = agent ] || reader=$command
	sleep 5
	before=("$(cpu_ns "$reader")" "$(cpu_ns "$command")" "$(executed)")
	sleep "$seconds"
	awk -v name="$name" -v seconds="$seconds" -v reader=$(($(cpu_ns "$reader") - before[0])) -v command=$(($(cpu_ns "$command") - before[1])) \
		-v commits=$(($(executed) - before[2])) \
		'BEGIN { printf "%s %.3f %.3f %.1f\n", name, reader / seconds / 1e6, command / seconds / 1e6, commits / seconds }'
	wait "$command"
	grep -q "not measured.*threads" "$place/record-$name.log" && echo "traced.sh: $name traced nothing" >&2
	rm -rf "$place/runs-$name"
}
for pair in $(seq "$pairs"); do
	# Each goes first in half of the pairs.
	if ((pair % 2)); then window local && window agent; else window agent && window local; fi
done | tee "$place/windows"
python3 - "$place/windows" <<'END'
import statistics, sys

windows = {"local": [], "agent": []}
for line in open(sys.argv[1]):
    name, *numbers = line.split()
    windows[name].append([float(number) for number in numbers])
for name, rows in windows.items():
    reader, command, rate = (statistics.median(column) for column in zip(*rows))
    print(f"{name}: {reader:.2f} ms of CPU per second by what reads the server, {command:.2f} by the command, at {rate:.0f} transactions per second")
ratios = [agent[0] / local[0] for agent, local in zip(windows["agent"], windows["local"])]
print(f"agent / local, by pair: median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")
END
